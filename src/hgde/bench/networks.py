"""Training epochs of networks on one graph: ours, and the strongest that users have at hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from hgde.bench.problems import Citations

Epoch = Callable[[], None]


class _Propagate(torch.autograd.Function):
    """``A x`` by torch's CSR product, ``A^T g`` by that of the transpose, made once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transpose @ grad, None, None


def _csr(data: Citations) -> Tensor:
    """The symmetrically normalised adjacency with loops, as torch's CSR matrix."""
    warnings.filterwarnings("ignore", "Sparse")
    n, graph = data.graph.num_nodes, data.graph
    loops = torch.arange(n)
    rows, columns = torch.cat([graph.rows, loops]), torch.cat([graph.indices, loops])
    degree = torch.bincount(rows, minlength=n).float().rsqrt()
    coo = torch.sparse_coo_tensor(torch.stack([rows, columns]), degree[rows] * degree[columns], (n, n))
    return coo.coalesce().to_sparse_csr()


def csr_gcn_epoch(data: Citations, width: int, layers: int) -> Epoch:
    """A GCN on torch's CSR product: the strongest thing that ten lines of torch give."""
    matrix = _csr(data)  # symmetric, so it is its own transpose

    def propagate(x: Tensor) -> Tensor:
        result: Tensor = _Propagate.apply(x, matrix, matrix)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return result

    widths = _widths(data, width, layers)
    linear = nn.ModuleList(nn.Linear(a, b) for a, b in zip([width, *widths[:-1]], widths, strict=True))
    first = _first(data, width)

    def forward(h: Tensor) -> Tensor:
        for n, layer in enumerate(linear):
            h = propagate(layer(h) if n else h)
            if n < len(linear) - 1:
                h = nn.functional.dropout(h.relu(), 0.5)
        return h

    return _training(data, first, [*linear.parameters()], forward)


def pyg_epoch(data: Citations, width: int, layers: int, heads: int = 0, compiled: bool = False) -> Epoch:
    """PyG's GCN, or with ``heads`` its GAT, heads averaged as ours are; ``compiled`` by inductor."""
    from torch_geometric.nn import GATConv, GCNConv

    widths = _widths(data, width, layers)
    make: Any = GCNConv
    options: dict[str, Any] = {"cached": True}
    if heads:
        make, options = GATConv, {"heads": heads, "concat": False}
    convolutions = nn.ModuleList(make(width, w, **options) for w in widths)
    if not heads:
        convolutions[0].lin = nn.Identity()
    edges = data.graph.edge_index

    def forward(h: Tensor) -> Tensor:
        for n, convolution in enumerate(convolutions):
            h = convolution(h, edges)
            if n < len(convolutions) - 1:
                h = nn.functional.dropout(h.relu(), 0.5)
        return h

    chosen = torch.compile(forward) if compiled else forward
    return _training(data, _first(data, width), [*convolutions.parameters()], chosen)


def _widths(data: Citations, width: int, layers: int) -> list[int]:
    return [width] * (layers - 1) + [int(data.labels.max()) + 1]


def _first(data: Citations, width: int) -> nn.Parameter:
    first = nn.Parameter(torch.empty(data.features.shape[1], width))
    nn.init.xavier_uniform_(first)
    return first


def _training(
    data: Citations, first: nn.Parameter, rest: Iterable[nn.Parameter], forward: Callable[[Tensor], Tensor]
) -> Epoch:
    """Sparse features times the first matrix, with dropout on their values, then the network; Adam, fused."""
    warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
    optimiser = torch.optim.Adam([first, *rest], lr=0.01, fused=True)
    features = data.features

    def epoch() -> None:
        optimiser.zero_grad(set_to_none=True)
        values = nn.functional.dropout(features.values, 0.5)
        x = torch.sparse_csr_tensor(features.indptr, features.indices, values, features.shape, check_invariants=False)
        nn.functional.cross_entropy(forward(x @ first)[data.train], data.labels[data.train]).backward()
        optimiser.step()

    return epoch


def hgde_epoch(data: Citations, width: int, time: float, **options: Any) -> Epoch:
    """One training epoch of the package's own model, as its trainer runs it: classes of the training nodes alone."""
    return model_epoch(data, "hgde", {"width": width, "time": time, **options})


def model_epoch(data: Citations, name: str, options: dict[str, Any]) -> Epoch:
    """One training epoch of a model of the package."""
    from hgde import randomness
    from hgde.models import MODELS, Shape
    from hgde.sections import build
    from hgde.tasks.base import Learner, SelectNodes
    from hgde.training.optimisers import Optimisers
    from hgde.training.settings import TrainingSettings

    classes, kind = int(data.labels.max()) + 1, MODELS.get(name)
    shape = Shape(int(data.features.shape[1]), data.graph.num_nodes, classes)
    model = kind(build(kind.Settings, options), shape)
    learner = Learner(model, SelectNodes(), classes).train()
    model.prepare(data.graph)
    optimisers = Optimisers(learner, TrainingSettings())
    source = randomness.make_generator(0)

    def epoch() -> None:
        optimisers.zero_grad()
        with randomness.use(source):
            logits = learner(data.features, data.graph, data.train)
        nn.functional.cross_entropy(logits, data.labels[data.train]).backward()
        optimisers.step(1000)  # long after the warm-up

    return epoch
