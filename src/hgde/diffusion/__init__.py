"""Where geometry, graphs and kernels meet: diffusivities, the flow they drive, and its energy."""

from hgde.diffusion.diffusivity import (
    DIFFUSIVITIES,
    Diffusivity,
    Global,
    Isotropic,
    LocalAttention,
    LocalRicci,
    Operator,
    make_diffusivity,
)
from hgde.diffusion.energy import dirichlet_energy
from hgde.diffusion.flow import BoundFlow, GraphFlow

__all__ = [
    "DIFFUSIVITIES",
    "BoundFlow",
    "Diffusivity",
    "Global",
    "GraphFlow",
    "Isotropic",
    "LocalAttention",
    "LocalRicci",
    "Operator",
    "dirichlet_energy",
    "make_diffusivity",
]
