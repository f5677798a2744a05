"""Preprocessing steps: each a small class that is fitted once and applied to new nodes unchanged."""

from hgde.data.steps.base import STEPS, Inputs, Step

__all__ = ["STEPS", "Inputs", "Step"]
