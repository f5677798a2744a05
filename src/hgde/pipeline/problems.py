"""A problem in a file: parts with their truth, and the training graph where it is not the data set's own."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from hgde.graph import Graph
from hgde.graph.checks import graph_problem
from hgde.tasks import PARTS, Part, Problem, Task
from hgde.tasks.metrics import CLASSES
from hgde.training import checkpoint

_GRAPH = ("indptr", "indices", "weights")


def save_problem(path: Path, problem: Problem, graph: Graph) -> None:
    """Write parts and split; ``graph`` is the data set's, which is not stored again."""
    tensors: dict[str, Tensor] = {}
    for name, part in problem.parts.items():
        tensors |= {f"{name}/items": part.items, f"{name}/truth": part.truth}
        if part.weights is not None:
            tensors[f"{name}/weights"] = part.weights
    if problem.graph is not graph:
        own = {f"graph/{name}": getattr(problem.graph, name) for name in _GRAPH}
        tensors |= {name: value for name, value in own.items() if value is not None}
    checkpoint.save(path, tensors, {"split": problem.split_name, "split_hash": problem.split_hash})


def load_problem(path: Path, task: Task, graph: Graph) -> Problem:
    """The problem that was stored, without features; it can be predicted and scored, not trained."""
    tensors, meta = checkpoint.load(path, allow_gaps=True)  # NaN is a value that is not known
    parts = {}
    for name in PARTS:
        own = checkpoint.part_of(tensors, f"{name}/")
        if "items" not in own or "truth" not in own:
            raise checkpoint.CheckpointError(f"{path} is damaged: it has no part {name!r}")
        parts[name] = Part(own["items"], own["truth"], own.get("weights"))
        problem = _part_problem(parts[name], task, graph.num_nodes)
        if problem is not None:
            raise checkpoint.CheckpointError(f"{path} is damaged: part {name!r} {problem}")
    stored = checkpoint.part_of(tensors, "graph/")
    if stored:
        graph = _read_graph(path, stored, graph.num_nodes)
    split, digest = (checkpoint.read_field(path, meta, name, str) for name in ("split", "split_hash"))
    return Problem(task, graph, parts, split, digest)


def _part_problem(part: Part, task: Task, num_nodes: int) -> str | None:
    """What cannot be used of a stored part, in words."""
    items, truth = part.items, part.truth
    if items.dtype != torch.int64 or items.dim() not in (1, 2) or (items.dim() == 2 and items.shape[0] != 2):
        return f"must name nodes or pairs of nodes, it holds {items.dtype} of shape {list(items.shape)}"
    if items.numel() and not 0 <= int(items.min()) <= int(items.max()) < num_nodes:
        return f"names nodes beyond the {num_nodes} there are"
    if truth.dim() == 0 or truth.shape[0] != part.size:
        return f"has a truth of shape {list(truth.shape)} for {part.size} items"
    if task.kind == CLASSES and truth.dtype != torch.int64:
        return f"has a truth of type {truth.dtype}, classes are whole numbers"
    if bool(torch.isinf(truth).any()):
        return "has an infinite truth"
    if task.kind == CLASSES and truth.numel() and not 0 <= int(truth.min()) <= int(truth.max()) < (task.outputs or 2):
        return f"has a class beyond the {task.outputs} there are"
    if part.weights is not None:
        weights = part.weights
        if weights.shape[:1] != items.shape[-1:] or not bool((torch.isfinite(weights) & (weights >= 0)).all()):
            return "has weights that are not a finite number from 0 on for each item"
    return None


def _read_graph(path: Path, stored: dict[str, Tensor], num_nodes: int) -> Graph:
    try:
        graph = Graph(stored["indptr"], stored["indices"], stored.get("weights"))
    except KeyError as error:
        raise checkpoint.CheckpointError(f"{path} is damaged: the graph has no {error}") from None
    problem = "it has another number of nodes" if graph.num_nodes != num_nodes else graph_problem(graph)
    if problem is not None:
        raise checkpoint.CheckpointError(f"{path} is damaged: the graph cannot be used, {problem}")
    return graph
