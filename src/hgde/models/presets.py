"""Configurations of HGDE that are well conditioned on any graph; validation chooses among them.

They differ in what graphs differ in: how far to carry features along edges, whether degrees mean something, whether
space should be curved, how clean the columns are, whether neighbours' labels say anything. All share an encoder of two
layers. They were drawn up on validation parts (``benchmarks/validate_presets.py``), no test part was looked at.
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
_TRAINING = {"lr": 0.02, "warm_up": 5, "weight_decay": 5e-4, "epochs": 200, "patience": 80}


def _preset(training: Mapping[str, Any] | None = None, **model: Any) -> Preset:
    return {"model": {**_ENCODER, **model}, "training": {**_TRAINING, **(training or {})}}


def _space(curvature: float) -> dict[str, Any]:
    return {"name": "ball", "curvature": curvature}


_LIGHT = {"dropout": 0.0, "state_dropout": 0.1}
"""For few or clean columns, of which none can be spared."""

_FEATURES_ALONE = {"time": 1.0, "eta": [0.0, 0.0, 1.0]}
"""Every step leads back to the start: what is read out is the encoder."""

_FIRM = {"weight_decay": 5e-3}
_SPARING = {"weight_decay": 1e-5}
_AVERAGED = {"averaging": 0.95}

PLAIN: dict[str, Preset] = {
    "default": _preset(_FIRM, diffusivity="symmetric", time=10.0, space=_space(0.01), encoder_layers=1),
    "shares": _preset(diffusivity="isotropic", time=8.0, space=_space(0.01), state_dropout=0.7),
    "near": _preset(diffusivity="isotropic", time=2.0, space=_space(0.1), encoder_layers=1),
    "curved": _preset(diffusivity="isotropic", time=4.0, space=_space(1.0), eta=[1.0, 0.3, 0.1]),
    "features": _preset(_FIRM | _AVERAGED, space=_space(0.1), **_FEATURES_ALONE),
    "light": _preset(_SPARING, diffusivity="isotropic", time=2.0, space=_space(0.1), eta=[1.0, 0.3, 0.3], **_LIGHT),
    "attention": _preset(
        diffusivity={"name": "attention", "heads": 2},
        time=2.0,
        space=_space(0.1),
        eta=[1.0, 0.5, 0.1],
        dropout=0.2,
        state_dropout=0.2,
    ),
    "ricci": _preset(_SPARING, diffusivity="ricci", time=2.0, space=_space(0.1), eta=[1.0, 0.5, 0.1], **_LIGHT),
    "local-global": _preset(
        diffusivity={"name": "local-global", "beta": 0.1}, time=2.0, space=_space(0.1), eta=[1.0, 0.5, 0.3]
    ),
}
"""Features and edges alone."""


def _with_labels(preset: Preset, training: Mapping[str, Any] | None = None, **model: Any) -> Preset:
    return {
        "model": {**preset["model"], **model},
        "training": {**preset["training"], **_AVERAGED, **(training or {})},
        "task": {"name": "nodes", "labels": True},
    }


WITH_LABELS: dict[str, Preset] = {
    "default-labels": _with_labels(
        _preset(diffusivity="symmetric", time=4.0, space=_space(0.01)), {"weight_decay_rest": 1e-3}
    ),
    "features-labels": _with_labels(PLAIN["features"]),
    "light-labels": _with_labels(PLAIN["light"], own_readout=True),
    "attention-labels": _with_labels(PLAIN["attention"], own_readout=True),
    "curved-labels": _with_labels(PLAIN["curved"], own_readout=True),
    "ricci-labels": _with_labels(PLAIN["ricci"], own_readout=True),
    "local-global-labels": _with_labels(PLAIN["local-global"], own_readout=True),
}
"""Reading the training labels around a node as well, most of them also its own features apart from its neighbours'.

Weights are averaged over epochs: the more there is to read, the more the last epoch's weights waver.
"""


def _agreeing(preset: Preset) -> Preset:
    return {**preset, "task": {"name": "nodes", "consistency": 1.0}}


AGREEING: dict[str, Preset] = {f"{name}-agreeing": _agreeing(PLAIN[name]) for name in ("default", "shares", "near")}
"""Drawn to the same answer by two passes with dropout of their own, on all nodes: what few labels leave open.

An epoch costs nearly twice as much. On validation parts it was worth 0.4 to 2.6 points on Cora and CiteSeer, 0.3 on
MNIST, nothing on 20News and PubMed, and cost 0.4 on Photo.
"""

PRESETS = PLAIN | WITH_LABELS | AGREEING

_LINKS = {
    "width": 32,
    "dropout": 0.2,
    "encoder_layers": 2,
    "encoder_width": 32,
    "encoder_activation": "relu",
    "encoder_bends_last": False,
    "eta": [1.0, 0.6, 0.3],
}
_LINK_TRAINING = {"lr": 0.02, "warm_up": 5, "weight_decay": 1e-3, "epochs": 200, "patience": 50}
_LINK_TASK = {"name": "links", "learn_fermi": True, "structure": True}
_HIDING = {**_LINK_TASK, "hidden_edges": 0.2}
"""An edge that points have moved along is easy to tell; those to be predicted are not there to move along."""

LINK_PRESETS: dict[str, Preset] = {
    "links": {
        "model": {**_LINKS, "diffusivity": "isotropic", "time": 2.0, "space": _space(1.0)},
        "training": _LINK_TRAINING,
        "task": _HIDING,
    },
    "links-symmetric": {
        "model": {**_LINKS, "diffusivity": "symmetric", "time": 2.0, "space": _space(0.1), "eta": [1.0, 0.3, 0.3]},
        "training": _LINK_TRAINING,
        "task": _HIDING,
    },
    "links-near": {
        "model": {
            **_LINKS, "diffusivity": "isotropic", "time": 1.0, "space": _space(1.0), "eta": [0.1, 0.2, 2.0],
            "dropout": 0.0,
        },
        "training": {**_LINK_TRAINING, "weight_decay": 0.0},
        "task": _LINK_TASK,
    },
}  # fmt: skip

FEW_LABELS = ("default-agreeing", "shares-agreeing", "near-agreeing", "features", "attention", "default-labels")
MANY_LABELS = ("features", "default", "default-labels", "light-labels", "curved-labels", "attention-labels")
NO_CLASSES = ("default", "shares", "features", "light", "curved", "attention")
"""What is tried in turn, simple ones first: where few nodes are labelled, where many are, for values and label sets.

``ricci`` and ``local-global`` are there to be asked for: the curvature of all edges, or a look at all pairs, costs more
than a race may.
"""

MANY = 0.2
"""Share of labelled nodes from which on a node's neighbourhood mostly holds some of them."""
