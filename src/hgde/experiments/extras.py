"""Extras: what can be done for any model beside training it on its loss, and which rows of a table had what.

HGDE's presets ask for some of them, and they can be worth more than one model is ahead of another: a plain GCN that
learns from edges hidden from it may gain tens of points. So any system can have those of its task, under its name with
a plus (``gcn+``), and tables say which rows have what.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hgde.experiments.space import lookup
from hgde.models.presets import MANY
from hgde.pipeline.presets import AUTO, NONE, with_preset
from hgde.pipeline.settings import make_settings

AGREEING: dict[str, Any] = {"task": {"name": "nodes", "consistency": 1.0}}
READING: dict[str, Any] = {"task": {"name": "nodes", "labels": True}, "training": {"averaging": 0.95}}
HIDING: dict[str, Any] = {"task": {"name": "links", "hidden_edges": 0.2, "structure": True}}
"""What HGDE's presets have, and every model can be trained with: for few labels, for many, and for links."""


def extras_for(task: str, *, many_labels: bool = False) -> dict[str, Any]:
    """Nested settings of the extras of a task.

    Labels are read where there are many, as HGDE's own candidates do: where few nodes have one, hardly a training node
    sees any, and a model that learned to read them from those loses by it.

    >>> extras_for("nodes", many_labels=True)["task"]
    {'name': 'nodes', 'labels': True}

    Raises:
        KeyError: if there are none for the task.
    """
    return {"nodes": READING if many_labels else AGREEING, "links": HIDING}[task]


def has_many_labels(labelled: int, num_nodes: int) -> bool:
    """Whether so many training nodes count as many."""
    return labelled >= MANY * num_nodes


WORDS = {
    "task.consistency": "agreement",
    "task.hidden_edges": "hidden edges",
    "task.structure": "pair structure",
    "task.labels": "labels read",
    "training.averaging": "averaged",
}
"""How tables call them."""

LEGEND = {
    "agreement": "two passes with dropout of their own are drawn to the same answer, on all nodes",
    "hidden edges": "each epoch learns from a fifth of the training edges, hidden from the model meanwhile",
    "pair structure": "the decoder also sees common neighbours and degrees of a pair",
    "labels read": "the model reads the training labels around a node, never the node's own",
    "averaged": "weights are averaged over epochs",
}

OF_EDGES = frozenset({"pair structure", "labels read"})
"""Extras by which a model learns of edges, even one that looks at features alone."""


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
