"""What the models share: linear layers on sparse features, weighted graphs as linear maps, softmax over neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from hgde.diffusion.degrees import edge_weights
from hgde.graph import Features, Graph, SparseFeatures
from hgde.kernels import sparse_matmul
from hgde.kernels.chance import dropout
from hgde.kernels.dispatch import use_fused
from hgde.kernels.ops import between
from hgde.models.base import Model, Shape
from hgde.randomness import generator
from hgde.sections import Section, setting

T = TypeVar("T")
Presets = Mapping[str, Mapping[str, Any]]


def for_links(preset: Mapping[str, Any]) -> dict[str, Any]:
    """A preset for classes of nodes, trained for links as HGCN's authors train theirs: until nothing improves.

    Classes are learned from few nodes within 100 or 200 epochs, and that is all that such presets have.

    >>> for_links({"model": {"width": 16}, "training": {"lr": 0.01, "epochs": 200}})["training"]
    {'lr': 0.01, 'epochs': 5000, 'patience': 100}
    """
    return {**preset, "training": {**preset["training"], "epochs": 5000, "patience": 100}}


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "relu": torch.relu,
    "elu": nn.functional.elu,
    "tanh": torch.tanh,
    "softplus": nn.functional.softplus,
}

_kept: WeakIdKeyDictionary = WeakIdKeyDictionary()


def once_per(owner: object, key: Hashable, make: Callable[[], T]) -> T:
    """``make()``, worked out once per ``owner`` (a graph or features, by identity) and ``key``, freed with the owner.

    What is made must not refer to the owner itself, or neither would ever be freed.
    """
    made: dict[Hashable, Any] | None = _kept.get(owner)
    if made is None:
        made = _kept[owner] = {}
    if key not in made:
        made[key] = make()
    return made[key]


def product(x: Features, weight: Tensor, p: float = 0.0, training: bool = False) -> Tensor:
    """``dropout(x) W``, ``[N, F] x [F, d] -> [N, d]``; sparse features stay sparse."""
    if isinstance(x, SparseFeatures):
        return sparse_matmul(x, weight, p, training, generator())
    return dropout(x, p, training) @ weight


def drop_features(x: Features, p: float, training: bool) -> Features:
    """Dropout on dense features, or on the stored values of sparse ones."""
    if isinstance(x, SparseFeatures):
        return x.with_values(dropout(x.values, p, training))
    return dropout(x, p, training)


class Dense(nn.Module):
    """``dropout(x) W + b`` for dense or sparse ``x``; ``W [in, out]`` starts by Glorot's rule, ``b`` at zero."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        nn.init.xavier_uniform_(self.weight, gain)
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, x: Features, p: float = 0.0) -> Tensor:
        return self.translate(product(x, self.weight, p, self.training))

    def translate(self, y: Tensor) -> Tensor:
        """``y + b``, for layers that do something between the product and the bias."""
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, bias={self.bias is not None}"


Norm = Literal["symmetric", "rows", "none"]


def adjacency(graph: Graph, norm: Norm = "symmetric", loops: bool = True, like: Tensor | None = None) -> SparseFeatures:
    """The graph's weighted adjacency matrix in CSR form, worked out once per graph.

    ``symmetric``: ``w_ij / sqrt(d_i d_j)``; ``rows``: ``w_ij / d_i``, with ``d_i`` the weight that arrives at ``i``.
    ``loops`` adds a loop of weight 1 where there is none. The dtype is that of ``like``.
    """
    dtype = torch.get_default_dtype() if like is None else like.dtype
    return once_per(graph, ("adjacency", norm, loops, dtype), lambda: _adjacency(graph, norm, loops, dtype))


def _adjacency(graph: Graph, norm: Norm, loops: bool, dtype: torch.dtype) -> SparseFeatures:
    if loops:
        graph = graph.with_self_loops()
    weights = edge_weights(graph)
    rows, columns = graph.rows, graph.indices
    degree = weights.new_zeros(graph.num_nodes).index_add_(0, rows, weights)
    # A node that receives nothing has an empty row; 1 only keeps the division out of trouble.
    safe = torch.where(degree > 0, degree, 1.0)
    if norm == "symmetric":
        weights = weights * safe.rsqrt()[rows] * torch.where(degree > 0, safe.rsqrt(), 0.0)[columns]
    elif norm == "rows":
        weights = weights / safe[rows]
    return pattern(graph, weights.to(dtype))


def pattern(graph: Graph, values: Tensor) -> SparseFeatures:
    """``values`` on the edges of a graph as a matrix, row = receiving node."""
    matrix = SparseFeatures(graph.indptr, graph.indices, values, (graph.num_nodes, graph.num_nodes))
    matrix.__dict__.update(rows=graph.rows, by_column=graph.by_source)
    return matrix


def propagate(matrix: SparseFeatures, x: Tensor) -> Tensor:
    """``A x`` for a matrix with fixed values, ``[N, d]``; the gradient gathers over the transpose. Cost ``E d``."""
    return sparse_matmul(matrix, x)


def edge_sum(matrix: SparseFeatures, weights: Tensor, x: Tensor) -> Tensor:
    """``y_i = sum_j w_ij x_j`` over the matrix's edges, differentiable in both.

    ``weights [E]`` with ``x [N, d]``, or per head ``[E, H]`` with ``[N, H, d]``.
    """
    if weights.dim() == 1:
        return edge_sum(matrix, weights[:, None], x[:, None]).squeeze(1)
    if use_fused("auto", weights, x):
        y: Tensor = between.edge_sum(weights, x, matrix.indptr, matrix.indices, False)
        return y
    return torch.zeros_like(x).index_add(0, matrix.rows, weights[..., None] * x.index_select(0, matrix.indices))


def edge_dot(matrix: SparseFeatures, a: Tensor, b: Tensor) -> Tensor:
    """``<a_i, b_j>`` of every edge: ``[N, d] -> [E]``, or per head ``[N, H, d] -> [E, H]``."""
    if a.dim() == 2:
        return edge_dot(matrix, a[:, None], b[:, None]).squeeze(1)
    if use_fused("auto", a, b):
        dots: Tensor = between.edge_dot(a, b, matrix.indptr, matrix.indices)
        return dots
    return (a.index_select(0, matrix.rows) * b.index_select(0, matrix.indices)).sum(-1)


def edge_scores(matrix: SparseFeatures, receives: Tensor, sends: Tensor, slope: float = 0.2) -> Tensor:
    """``LeakyReLU(r_i + s_j)`` of every edge: ``[N] -> [E]``, or per head ``[N, H] -> [E, H]``."""
    if receives.dim() == 1:
        return edge_scores(matrix, receives[:, None], sends[:, None], slope).squeeze(1)
    if use_fused("auto", receives, sends):
        scores: Tensor = between.edge_add(receives, sends, matrix.indptr, matrix.indices, slope)
        return scores
    both = receives.index_select(0, matrix.rows) + sends.index_select(0, matrix.indices)
    return nn.functional.leaky_relu(both, slope)


def edge_softmax(matrix: SparseFeatures, scores: Tensor) -> Tensor:
    """Softmax of ``scores [E]`` or ``[E, H]`` over the edges that arrive at the same node."""
    if scores.dim() == 1:
        return edge_softmax(matrix, scores[:, None]).squeeze(1)
    if use_fused("auto", scores):
        softmax: Tensor = between.edge_softmax(scores, matrix.indptr, matrix.indices)
        return softmax
    rows = matrix.rows
    largest = torch.segment_reduce(scores.detach(), "max", offsets=matrix.indptr, axis=0)
    weights = (scores - largest.index_select(0, rows)).exp()
    total = weights.new_zeros(matrix.shape[0], *weights.shape[1:]).index_add(0, rows, weights)
    return weights / total.index_select(0, rows)


@dataclass(frozen=True)
class LayeredSettings(Section):
    """What every model made of equal layers has."""

    width: int = setting(16, "width of the hidden representation", at_least=1)
    layers: int = setting(2, "number of layers, the one that gives the outputs included", at_least=1)
    dropout: float = setting(0.5, "dropout on the input of every layer", at_least=0, below=1)


class Layered(Model):
    """``layers`` layers of one kind with an activation between; the last one gives the outputs.

    Without outputs (links) all layers are hidden ones and the last is not activated, so that points spread in all
    directions. With outputs, the embedding is what goes into the last layer.
    """

    Settings: ClassVar[type[Section]] = LayeredSettings
    activation: ClassVar[str] = "relu"

    def __init__(self, settings: Any, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        outputs = settings.width if shape.outputs is None else shape.outputs
        widths = [shape.in_features, *[settings.width] * (settings.layers - 1), outputs]
        last = len(widths) - 2
        self.layers = nn.ModuleList(self.layer(a, b, i == last) for i, (a, b) in enumerate(itertools.pairwise(widths)))

    def layer(self, inputs: int, outputs: int, last: bool) -> nn.Module:
        raise NotImplementedError

    def message(self, layer: nn.Module, x: Features, graph: Graph) -> Tensor:
        """What a layer makes of its input, dropout included."""
        raise NotImplementedError

    def feature_parameters(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.layers[0].parameters() if parameter.dim() == 2][:1]

    def embed(self, features: Features, graph: Graph) -> Tensor:
        all_hidden = self.shape.outputs is None or len(self.layers) == 1
        return self._run(features, graph, len(self.layers) if all_hidden else len(self.layers) - 1)

    def forward(self, features: Features, graph: Graph) -> Tensor:
        return self._run(features, graph, len(self.layers))

    def _run(self, features: Features, graph: Graph, count: int) -> Tensor:
        x: Features = features
        for number in range(count):
            x = self.message(self.layers[number], x, graph)
            if number < len(self.layers) - 1:
                x = ACTIVATIONS[self.activation](x)
        assert isinstance(x, Tensor)
        return x
