"""What is computed for the figures, in the processes of :mod:`hgde.experiments.jobs`."""

from __future__ import annotations

from typing import Any

import torch

from hgde.experiments.jobs import Job
from hgde.experiments.work import settings_for
from hgde.pipeline import Fitted, fit, versions

INTEGRATORS = ("heuler", "hrk4", "ham")
DIFFUSIVITIES = ("isotropic", "attention", "ricci", "global", "local-global")
SAMPLED = 400
STRONGEST = 800
"""Global weights drawn: the largest ones among the sampled nodes."""


def energy(job: Job) -> dict[str, Any]:
    """Train, then follow the energy of the trained flow along time."""
    from hgde.diffusion import dirichlet_energy, edge_energy
    from hgde.models import HGDE

    result = fit(settings_for(job.settings))
    fitted = result.models[0]
    model = fitted.learner.model
    assert isinstance(model, HGDE)
    features, graph, _ = fitted.inputs()
    with torch.no_grad():
        times, states = model.trajectory(features, graph)
        curves = [f(states, graph, model.manifold).double().tolist() for f in (dirichlet_energy, edge_energy)]
    found = {"times": list(times), "energy": curves[0], "edge_energy": curves[1], "test": result.summary.mean()}
    return found | {"versions": versions()}


def disk(job: Job) -> dict[str, Any]:
    """Train in two dimensions; a sample of the points, and the weights of the last step between them."""
    result = fit(settings_for(job.settings))
    return sampled_weights(result.models[0], SAMPLED) | {"test": result.summary.mean(), "versions": versions()}


@torch.no_grad()
def sampled_weights(fitted: Fitted, count: int) -> dict[str, Any]:
    """Points in the unit disk, labels, local weights ``[i, j, a_ij]`` and the strongest global ones among a sample."""
    from hgde.models import HGDE
    from hgde.report.disk import to_disk

    model = fitted.learner.model
    assert isinstance(model, HGDE)
    features, graph, dataset = fitted.inputs()
    z = model.embed(features, graph)
    operator = model.block.flow.bind(z, graph).operator_at(z)
    chosen = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))[:count].sort().values
    place = torch.full((graph.num_nodes,), -1)
    place[chosen] = torch.arange(len(chosen))
    weights = operator.edges(graph)
    weights = weights.mean(1) if weights.dim() == 2 else weights
    i, j = place[graph.rows], place[graph.indices]
    kept = (i >= 0) & (j >= 0) & (i != j)
    local = [list(entry) for entry in zip(i[kept].tolist(), j[kept].tolist(), weights[kept].tolist(), strict=True)]
    far: list[list[float]] = []
    if operator.everywhere is not None:
        table = float(operator.beta) * operator.everywhere.rows(chosen)[:, chosen]
        table = table.masked_fill(torch.eye(len(chosen), dtype=torch.bool), 0.0)
        values, at = table.flatten().topk(min(STRONGEST, table.numel()))
        far = [[int(k) // len(chosen), int(k) % len(chosen), float(v)] for v, k in zip(values, at, strict=True)]
    points = to_disk(z[chosen].cpu(), model.curvatures().get("diffusion", 1.0))
    labels = [] if dataset.labels is None else dataset.labels[chosen].tolist()
    return {"points": points.double().tolist(), "labels": labels, "local": local, "global": far}
