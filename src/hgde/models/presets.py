"""Configurations of HGDE that are well conditioned on any graph; validation chooses among them.

They differ in what graphs differ in: how far to carry features along edges, whether degrees mean something, whether
space should be curved. All share an encoder of two layers, unit-length features and strong dropout on the encoded nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Preset = Mapping[str, Mapping[str, Any]]

_ENCODER = {
    "width": 64,
    "encoder_layers": 2,
    "encoder_activation": "relu",
    "dropout": 0.5,
    "state_dropout": 0.5,
    "eta": [1.0, 0.0, 0.1],
}
_TRAINING = {"lr": 0.01, "weight_decay": 5e-4, "epochs": 400, "patience": 100}


def _preset(training: Mapping[str, Any] | None = None, **model: Any) -> Preset:
    return {"model": {**_ENCODER, **model}, "training": {**_TRAINING, **(training or {})}}


def _space(curvature: float) -> dict[str, Any]:
    return {"name": "ball", "curvature": curvature}


PRESETS: dict[str, Preset] = {
    "default": _preset(diffusivity="symmetric", time=8.0, space=_space(0.01)),
    "shares": _preset(diffusivity="isotropic", time=8.0, space=_space(0.01), state_dropout=0.7),
    "curved": _preset(diffusivity="isotropic", time=4.0, space=_space(1.0), eta=[1.0, 0.3, 0.1]),
    "near": _preset(diffusivity="isotropic", time=1.0, space=_space(0.1), eta=[0.3, 1.0, 0.0]),
    "attention": _preset(
        diffusivity={"name": "attention", "heads": 2}, time=2.0, space=_space(0.1), eta=[1.0, 0.5, 0.1]
    ),
    "ricci": _preset(diffusivity="ricci", time=2.0, space=_space(0.1), eta=[1.0, 0.5, 0.1]),
}

LINK_PRESETS: dict[str, Preset] = {}

MOST_EDGES_FOR_RICCI = 200_000
"""Exact curvature of the edges of a larger graph takes longer than the training it is for."""
