"""Configurations of HGDE that are well conditioned on any graph; validation chooses among them.

They differ in what graphs differ in: how far to carry features along edges, whether degrees mean something, whether
space should be curved. All share an encoder of two layers.
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


_LIGHT = {"dropout": 0.0, "state_dropout": 0.1}
"""For few or clean columns, of which none can be spared."""

PRESETS: dict[str, Preset] = {
    "default": _preset(diffusivity="symmetric", time=8.0, space=_space(0.01)),
    "shares": _preset(diffusivity="isotropic", time=8.0, space=_space(0.01), state_dropout=0.7),
    "curved": _preset(diffusivity="isotropic", time=4.0, space=_space(1.0), eta=[1.0, 0.3, 0.1]),
    "near": _preset(diffusivity="isotropic", time=1.0, space=_space(0.1), eta=[0.3, 1.0, 0.0]),
    "light": _preset(
        {"weight_decay": 1e-5}, diffusivity="isotropic", time=2.0, space=_space(0.1), eta=[1.0, 0.3, 0.3], **_LIGHT
    ),
    "attention": _preset(
        diffusivity={"name": "attention", "heads": 2},
        time=2.0,
        space=_space(0.1),
        eta=[1.0, 0.5, 0.1],
        dropout=0.2,
        state_dropout=0.2,
    ),
    "ricci": _preset(
        {"weight_decay": 1e-5}, diffusivity="ricci", time=2.0, space=_space(0.1), eta=[1.0, 0.5, 0.1], **_LIGHT
    ),
}

_LINKS = {"width": 32, "dropout": 0.2, "state_dropout": 0.0, "encoder_layers": 2, "encoder_activation": "relu"}
_LINK_TRAINING = {"lr": 0.01, "weight_decay": 1e-3, "epochs": 300, "patience": 60}


def _link_preset(**model: Any) -> Preset:
    return {
        "model": {**_LINKS, **model},
        "training": _LINK_TRAINING,
        "task": {"name": "links", "learn_fermi": True},
    }


LINK_PRESETS: dict[str, Preset] = {
    "links": _link_preset(diffusivity="isotropic", time=2.0, space=_space(1.0), eta=[1.0, 0.6, 0.3]),
    "links-symmetric": _link_preset(diffusivity="symmetric", time=2.0, space=_space(0.1), eta=[1.0, 0.3, 0.3]),
    "links-near": _link_preset(diffusivity="isotropic", time=1.0, space=_space(1.0), eta=[0.1, 0.2, 2.0]),
}

MOST_EDGES_FOR_RICCI = 200_000
"""Exact curvature of the edges of a larger graph takes longer than the training it is for."""
