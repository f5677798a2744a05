"""Extras: what can be done for any model beside training it on its loss, and which rows of a table had what.

HGDE's presets ask for some of them, and they can be worth more than one model is ahead of another: a plain GCN that
learns from edges hidden from it may gain tens of points. So any system can have those of its task, under its name with
a plus (``gcn+``), and tables say which rows have what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hgde.experiments.space import lookup
from hgde.pipeline.presets import AUTO, NONE, with_preset
from hgde.pipeline.settings import make_settings

EXTRAS: dict[str, dict[str, Any]] = {
    "nodes": {"consistency": 1.0},
    "links": {"hidden_edges": 0.2, "structure": True},
}
"""Settings of a task that HGDE's presets have, and that every model can be trained with."""

WORDS = {
    "task.consistency": "agreement",
    "task.hidden_edges": "hidden edges",
    "task.structure": "pair structure",
    "model.labels": "labels read",
    "training.averaging": "averaged",
}
"""How tables call them. Reading labels is a part of HGDE's model; others cannot be given it."""

LEGEND = {
    "agreement": "two passes with dropout of their own are drawn to the same answer, on all nodes",
    "hidden edges": "each epoch learns from a fifth of the training edges, hidden from the model meanwhile",
    "pair structure": "the decoder also sees common neighbours and degrees of a pair",
    "labels read": "the model reads the training labels around a node, never the node's own",
    "averaged": "weights are averaged over epochs",
}


def extras_of(settings: Mapping[str, Any], presets: Iterable[str | None] = ()) -> list[str]:
    """What settings have, in the words of tables: with any of the presets that their runs were trained with."""
    made = make_settings(settings, lenient=True)
    named = {name for name in (made.preset, *presets) if name not in (AUTO, NONE, None)}
    each = [made, *(with_preset(made, str(name)) for name in named)]
    resolved = [one.to_dict() for one in each]
    return [words for path, words in WORDS.items() if any(lookup(one, path) for one in resolved)]


def with_legend(words: Iterable[str]) -> list[str]:
    """What these words mean, in the order of the tables."""
    said = set(words)
    return [f"*{name}*: {LEGEND[name]}" for name in WORDS.values() if name in said]
