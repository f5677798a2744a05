"""Every mode of the model against the strongest peers, and the backward pass against the forward one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial

import torch

from hgde.bench import networks, problems
from hgde.bench.measure import Row, medians
from hgde.kernels import EdgeWeights, diffuse

ETA = (1.0, 0.6, 0.1)
DEPTHS = {2: 1.0, 4: 1.2, 8: 1.6, 16: 2.0}
#: Evaluations of the flow in a step of ``hrk4``.
STAGES = 4


def _detail(taken: dict[str, float], real: bool) -> str:
    note = "" if real else "; random data of the same size (set HGDE_DATA for the real one)"
    return ", ".join(f"{name} {1000 * value:.3g} ms" for name, value in taken.items()) + note


def _against(
    name: str, what: str, bar: float, ours: Callable[[], None], peer: Callable[[], Callable[[], None]], quick: bool,
    real: bool, label: str,
) -> Row:  # fmt: skip
    try:
        theirs = peer()
    except ImportError:
        return Row(name, what, None, bar, "at least", detail="torch_geometric is not installed")
    taken = medians({"HGDE": ours, label: theirs}, 0.2 if quick else 4)
    return Row(name, what, taken[label] / taken["HGDE"], bar, "at least", detail=_detail(taken, real))


def depth(quick: bool) -> Iterator[Row]:
    """One training epoch on Cora against a GCN on torch's CSR product of as many layers."""
    data = problems.citations("cora")
    for layers, bar in list(DEPTHS.items())[: 1 if quick else None]:
        ours = networks.hgde_epoch(data, 16, float(layers))
        what = f"training epoch on Cora, width 16, T = {layers}: CSR GCN / HGDE"
        peer = partial(networks.csr_gcn_epoch, data, 16, layers)
        yield _against(f"csr-{layers}", what, bar, ours, peer, quick, data.real, "CSR GCN")


def hyperbolic(quick: bool) -> Iterator[Row]:
    """One training epoch on Cora against the hyperbolic networks of as many layers, as the package implements them."""
    data = problems.citations("cora")
    for layers in list(DEPTHS)[: 1 if quick else None]:
        calls = {"HGDE": networks.hgde_epoch(data, 16, float(layers))}
        for name in ("hgcn", "hybonet"):
            calls[name] = networks.model_epoch(data, name, {"width": 16, "layers": layers})
        taken = medians(calls, 0.2 if quick else 4)
        for name in ("hgcn", "hybonet"):
            what = f"training epoch on Cora, width 16, T = {layers}: {name} / HGDE"
            value = taken[name] / taken["HGDE"]
            yield Row(f"{name}-{layers}", what, value, 3, "at least", detail=_detail(taken, data.real))


def compiled(quick: bool) -> Iterator[Row]:
    """One training epoch on Cora against PyG's GCN of as many layers, compiled by inductor."""
    data, layers = problems.citations("cora"), 2 if quick else 8
    what = f"training epoch on Cora, width 16, T = {layers}: compiled PyG GCN / HGDE"
    try:
        theirs = networks.pyg_epoch(data, 16, layers, compiled=True)
        theirs()
    except ImportError:
        yield Row("compiled-pyg", what, None, None, "report", detail="torch_geometric is not installed")
        return
    except Exception as error:  # whatever the compiler of the machine refuses
        yield Row("compiled-pyg", what, None, None, "report", detail=f"does not compile here: {type(error).__name__}")
        return
    taken = medians({"HGDE": networks.hgde_epoch(data, 16, float(layers)), "compiled PyG": theirs}, 0.2 if quick else 4)
    value = taken["compiled PyG"] / taken["HGDE"]
    yield Row("compiled-pyg", what, value, None, "report", detail=_detail(taken, data.real))


def attention(quick: bool) -> Iterator[Row]:
    """One training epoch with attention against PyG's GAT of as many layers."""
    data = problems.citations("cora")
    for heads in (1,) if quick else (1, 4):
        chosen = {"name": "attention", "heads": heads}
        ours = networks.hgde_epoch(data, 16, 2.0 if quick else 8.0, diffusivity=chosen)
        what = f"training epoch on Cora, width 16, T = 8, attention, {heads} heads: PyG GAT / HGDE"
        peer = partial(networks.pyg_epoch, data, 16, 2 if quick else 8, heads)
        yield _against(f"attention-{heads}", what, 3, ours, peer, quick, data.real, "GAT")


def solvers(quick: bool) -> Iterator[Row]:
    """What an evaluation costs in solvers of several stages, against ``heuler``'s step.

    ``heuler``'s few steps reach fewer rows from the training nodes than others' evaluations: so on all nodes as well.
    """
    data = problems.citations("cora")
    every = problems.learning_from_all(data)
    time = 2.0 if quick else 8.0
    calls = {
        "heuler on all nodes": networks.hgde_epoch(every, 16, time),
        "hrk4 on all nodes": networks.hgde_epoch(every, 16, time, solver="hrk4"),
        "heuler": networks.hgde_epoch(data, 16, time),
        "hrk4": networks.hgde_epoch(data, 16, time, solver="hrk4"),
        "ham": networks.hgde_epoch(data, 16, time, solver="ham"),
        "ricci": networks.hgde_epoch(data, 16, time, diffusivity="ricci"),
    }
    taken = medians(calls, 0.2 if quick else 6)
    detail = _detail(taken, data.real)
    value = taken["hrk4"] / STAGES / taken["heuler"]
    what = "hrk4 on Cora, width 16, T = 8: epoch per evaluation / heuler's per step"
    yield Row("hrk4", what, value, 1.15, "at most", detail=detail)
    value = taken["hrk4 on all nodes"] / STAGES / taken["heuler on all nodes"]
    yield Row("hrk4-all", f"{what}, both on all nodes", value, None, "report", detail=detail)
    yield Row("ham", "ham: epoch / heuler's", taken["ham"] / taken["heuler"], None, "report", detail=detail)
    yield Row("ricci-mode", "ricci: epoch / isotropic's", taken["ricci"] / taken["heuler"], None, "report")


def pubmed(quick: bool) -> Iterator[Row]:
    """The larger citation graph, width 64."""
    data = problems.citations("cora" if quick else "pubmed")
    layers = 2 if quick else 8
    ours = networks.hgde_epoch(data, 64, float(layers))
    what = "training epoch on PubMed, width 64, T = 8: CSR GCN / HGDE"
    peer = partial(networks.csr_gcn_epoch, data, 64, layers)
    yield _against("pubmed-csr", what, 2, ours, peer, quick, data.real, "CSR GCN")
    ours = networks.hgde_epoch(data, 64, float(layers), diffusivity="attention")
    what = "training epoch on PubMed, width 64, T = 8, attention: PyG GAT / HGDE"
    gat = partial(networks.pyg_epoch, data, 64, layers, 1)
    yield _against("pubmed-attention", what, 3, ours, gat, quick, data.real, "GAT")


def backward(quick: bool) -> Iterator[Row]:
    """The backward pass of one evaluation with constant weights against its forward pass, and that against a bare
    sparse product of the same size."""
    warnings.filterwarnings("ignore", "Sparse")
    sizes = ((20_000, 16),) if quick else ((1_000_000, 16), (1_000_000, 64), (10_000_000, 16), (10_000_000, 64))
    for edges, width in sizes:
        problem = problems.random_problem(edges, width)
        z, graph, c = problem.z, problem.graph, torch.tensor(1.0, requires_grad=True)
        weights, points, arriving = EdgeWeights(problem.weights.detach()), problem.z.detach(), torch.ones_like(z)
        matrix = torch.sparse_csr_tensor(graph.indptr, graph.indices, weights.values, (len(z), len(z)))

        def forward(z: torch.Tensor = points, graph=graph, weights=weights, c=c) -> None:  # type: ignore[no-untyped-def]  # defaults tie it to this turn of the loop
            with torch.no_grad():
                diffuse(z, graph, weights, c, z, ETA)

        def both(z=z, graph=graph, weights=weights, c=c, arriving=arriving) -> None:  # type: ignore[no-untyped-def]  # defaults tie it to this turn of the loop
            out = diffuse(z, graph, weights, c, z, ETA)
            torch.autograd.grad(out, (z, c), arriving)

        def product(matrix=matrix, points=points) -> None:  # type: ignore[no-untyped-def]  # defaults tie it to this turn of the loop
            matrix @ points

        taken = medians({"forward": forward, "both": both, "product": product}, 0.2 if quick else 6)
        size = f"{graph.num_edges:,} edges, width {width}"
        name, detail = f"{edges // 1_000_000}M-{width}", _detail(taken, True)
        yield _held_to(
            2.5 if (edges, width) != (10_000_000, 64) else None,
            f"backward-{name}", f"backward / forward, {size}", taken["both"] / taken["forward"] - 1, detail,
        )  # fmt: skip
        ratio = taken["forward"] / taken["product"]
        yield _held_to(
            1.0 if width == 64 else None, f"forward-{name}", f"forward / a bare CSR product, {size}", ratio, ""
        )


def _held_to(bar: float | None, name: str, what: str, value: float, detail: str) -> Row:
    """A ratio that is at most its bar, or only reported."""
    return Row(name, what, value, bar, "report" if bar is None else "at most", detail=detail)
