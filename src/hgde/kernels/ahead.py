"""Kernels asked for before they are needed. Torch is not: a command can call this while it loads its libraries."""

from __future__ import annotations

from typing import Any

from hgde.compiler.load import prepare
from hgde.kernels.backend import get_backend
from hgde.kernels.cpu.sizes import at_width

PARTS = {
    "edge": ("trajectories.forward_edges", "trajectories.backward_mutual"),
    "channel": ("trajectories.forward_channels", "trajectories.backward_channels"),
    "attending": ("attentive.forward", "attentive.backward"),
    "attention": ("attention.softmax", "attention.softmax_target", "attention.softmax_source"),
    "global": ("pairs.forward", "pairs.backward", "rows.advance", "rows.advance_backward"),
    "origin": ("origin.forward", "origin.backward"),
    "links": ("links.norms", "links.logits", "links.around", "links.gradient"),
    "flat_links": ("links.squares", "links.around", "links.gradient"),
    "sparse": ("sparse.product", "sparse.drop"),
    "encoder": ("encoder.forward", "encoder.backward"),
    "decoder": ("decoder.forward", "decoder.backward"),
    "stages": ("programs.forward", "programs.backward_mutual"),
    "advance": ("rows.advance", "rows.advance_backward"),
    "solver": ("maps.log", "maps.log_backward", "rows.advance", "rows.advance_backward"),
    "transport": ("maps.transport", "maps.transport_backward", "maps.shrink", "maps.shrink_backward"),
    "adam": ("points.adam",),
}
"""The kernels of each part of a model."""


def warm_up(*parts: str, dtype: Any = "float32", width: int = 16) -> None:
    """Begin to compile the kernels of these parts of a model, in the background, unless they are there already.

    Parts: the weights (``edge``, ``attention``, which needs ``edge`` too, ``attending``, steps of ``heuler`` with
    attention, ``channel``, ``global``), ``origin`` for maps there, ``encoder`` for one layer on sparse features,
    ``decoder`` for scores of points, ``sparse`` for products with features, ``links`` for pairs, ``flat_links`` for
    pairs in flat space, ``advance`` for steps from tangent vectors at hand, ``solver`` for solvers that call the ball's
    exp and log, ``transport`` for those that carry vectors too, ``stages`` for solvers of several stages with constant
    weights of edges, ``adam`` for training points. Some kernels are made for the ``width`` of the points. Calling it
    before the data are read hides the time a first run takes; nothing depends on it.

    Args:
        dtype: of the points, torch's or its name.

    >>> warm_up("edge", "origin")      # returns at once
    """
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise ValueError(f"unknown parts {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}")
    if get_backend() != "reference":
        for part in parts:
            prepare([at_width(name, width) for name in PARTS[part]], dtype)
