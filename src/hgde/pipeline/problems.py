"""A problem in a file: parts with their truth, and the training graph where it is not the data set's own."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from hgde.graph import Graph
from hgde.graph.checks import graph_problem
from hgde.tasks import PARTS, Part, Problem, Task
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
        items = own["items"]
        if items.numel() and not 0 <= int(items.min()) <= int(items.max()) < graph.num_nodes:
            raise checkpoint.CheckpointError(
                f"{path} is damaged: part {name!r} names nodes beyond the {graph.num_nodes} there are"
            )
        parts[name] = Part(items, own["truth"], own.get("weights"))
    stored = checkpoint.part_of(tensors, "graph/")
    if stored:
        graph = _read_graph(path, stored, graph.num_nodes)
    split, digest = (checkpoint.read_field(path, meta, name, str) for name in ("split", "split_hash"))
    return Problem(task, graph, parts, split, digest)


def _read_graph(path: Path, stored: dict[str, Tensor], num_nodes: int) -> Graph:
    try:
        graph = Graph(stored["indptr"], stored["indices"], stored.get("weights"))
    except KeyError as error:
        raise checkpoint.CheckpointError(f"{path} is damaged: the graph has no {error}") from None
    problem = "it has another number of nodes" if graph.num_nodes != num_nodes else graph_problem(graph)
    if problem is not None:
        raise checkpoint.CheckpointError(f"{path} is damaged: the graph cannot be used, {problem}")
    return graph
