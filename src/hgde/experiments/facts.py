"""What a graph itself says, before anything is trained."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from hgde.graph import Features
from hgde.graph.measures.hyperbolicity import hyperbolicity
from hgde.graph.measures.statistics import graph_statistics
from hgde.pipeline import Prepared, Settings

SAMPLES = 20_000


def graph_facts(prepared: Prepared, settings: Settings) -> dict[str, Any]:
    """Sizes, homophily, hyperbolicity and kind of features, as plain values."""
    dataset, problem = prepared.dataset, prepared.problem
    measured = graph_statistics(dataset.graph, dataset.labels)
    delta = hyperbolicity(dataset.graph, SAMPLES, 0)
    return {
        "data": dataset.name,
        "task": settings.task.name,
        "nodes": measured.num_nodes,
        "edges": measured.num_edges,
        "components": measured.num_components,
        "mean_degree": round(measured.mean_degree, 2),
        "max_degree": measured.max_degree,
        "classes": dataset.num_classes,
        "homophily": measured.edge_homophily,
        "delta_max": delta.maximum,
        "delta_mean": round(delta.mean, 4),
        "delta_samples": delta.samples,
        "features": feature_kind(problem.inputs, dataset.meta.get("features") == "identity"),
        "parts": {name: part.size for name, part in problem.parts.items()},
        "split": problem.split_name,
    }


def feature_kind(features: Features, is_identity: bool) -> str:
    width = int(features.shape[1])
    if is_identity:
        return "none (one-hot node numbers)"
    if isinstance(features, Tensor):
        return f"{width} dense columns"
    share = features.values.numel() / max(1, features.shape[0] * width)
    return f"{width} sparse columns ({100 * share:.1f} % filled)"
