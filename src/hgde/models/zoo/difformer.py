"""DIFFormer: diffusion with attention between all pairs of nodes, in flat space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph
from hgde.kernels.chance import dropout
from hgde.models.base import MODELS, Model, Shape, built
from hgde.models.zoo._blocks import by_rows
from hgde.models.zoo._common import Dense, Presets, adjacency, propagate
from hgde.sections import Section, setting


def attend_simple(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """``sum_j (1 + <q_i, k_j>) v_j / sum_j (1 + <q_i, k_j>)`` with ``q`` and ``k`` of norm 1; cost ``N d^2``, no table.

    The norm is that of all rows together, as in the authors' code: the sum below is then never less than
    ``N - sqrt(N)``. (In the paper the rows have norm 1 each.)
    """
    q, k = (x / x.norm().clamp_min(torch.finfo(x.dtype).tiny) for x in (q, k))
    return (v.sum(0) + q @ (k.T @ v)) / (v.shape[0] + q @ k.sum(0))[:, None]


def attend_itself(x: Tensor, w_q: Tensor, b_q: Tensor, w_k: Tensor, b_k: Tensor) -> Tensor:
    """``attend_simple(x W_q + b_q, x W_k + b_k, x)`` in two products of the size of ``x`` instead of four.

    All that is summed over the nodes follows from ``x^T x`` and the sum of the rows: with ``k = x W + b``,
    ``k^T x = W^T x^T x + b (1^T x)`` and ``|k|^2 = <W, x^T x W> + 2 <b, 1^T x W> + N |b|^2``.
    """
    square, total, nodes = x.T @ x, x.sum(0), x.shape[0]

    def norm(w: Tensor, b: Tensor) -> Tensor:
        squared = (w * (square @ w)).sum() + 2 * (total @ w) @ b + nodes * b.square().sum()
        return squared.clamp_min(torch.finfo(x.dtype).tiny).sqrt()

    scale = 1 / (norm(w_q, b_q) * norm(w_k, b_k))
    # The last column weighs by 1 where the others weigh by x: the denominator.
    seen = scale * torch.cat([w_k.T @ square + torch.outer(b_k, total), (total @ w_k + nodes * b_k)[:, None]], dim=1)
    sums = torch.addmm(torch.cat([total, total.new_full((1,), nodes)]) + b_q @ seen, x, w_q @ seen)
    return sums[:, :-1] / sums[:, -1:]


def attend_sigmoid(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """``sum_j s_ij v_j / sum_j s_ij`` with ``s = sigmoid(<q_i, k_j>)``; cost ``N^2 d``, in blocks of rows."""

    def block(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.sigmoid(q @ k.T)
        return (weights @ v) / weights.sum(1, keepdim=True)

    return by_rows(block, q, k, v)


class DIFFormerLayer(nn.Module):
    """``mean over heads of attention(x W_q, x W_k, x W_v) + A x``, the last part where the graph is used. ``[N, d]``

    Without ``values`` it is ``x`` itself that is attended to.
    """

    def __init__(self, width: int, heads: int, kernel: str, use_graph: bool, values: bool) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend_simple if kernel == "simple" else attend_sigmoid
        self.use_graph = use_graph
        self.query, self.key = Dense(width, width * heads), Dense(width, width * heads)
        self.value = Dense(width, width * heads) if values else None

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        v = [x] * self.heads if self.value is None else self.value(x).chunk(self.heads, 1)
        if self.attend is attend_simple and self.value is None:
            assert self.query.bias is not None
            assert self.key.bias is not None
            matrices = (self.query.weight, self.query.bias, self.key.weight, self.key.bias)
            parts = [attend_itself(x, *head) for head in zip(*(m.chunk(self.heads, -1) for m in matrices), strict=True)]
        else:
            q, k = self.query(x).chunk(self.heads, 1), self.key(x).chunk(self.heads, 1)
            parts = [self.attend(*head) for head in zip(q, k, v, strict=True)]
        if self.use_graph:
            matrix = adjacency(graph, like=x)
            parts = [part + propagate(matrix, value.contiguous()) for part, value in zip(parts, v, strict=True)]
        return torch.stack(parts).mean(0)


def _preset(layers: int, width: int, p: float, lr: float, decay: float, **more: Any) -> Any:
    return {
        "model": {"layers": layers, "width": width, "dropout": p, **more},
        "training": {"lr": lr, "weight_decay": decay, "weight_decay_rest": decay, "epochs": 500},
        "preprocessing": {"normalise": "words"},
    }


@MODELS.register("difformer")
class DIFFormer(Model):
    """``x' = norm(step layer(x) + (1 - step) x)`` after a dense encoder, before a dense decoder.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = DIFFormer(DIFFormer.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Wu et al., DIFFormer: scalable (graph) transformers induced by energy constrained diffusion, ICLR 2023"

    @dataclass(frozen=True)
    class Settings(Section):
        width: int = setting(64, "width of the hidden representation", at_least=1)
        layers: int = setting(2, "number of layers", at_least=1)
        heads: int = setting(1, "attention heads, averaged", at_least=1)
        kernel: str = setting("simple", "attention; simple costs N, sigmoid N^2", choices=("simple", "sigmoid"))
        graph: bool = setting(True, "add a propagation over the graph's edges", flag="use_graph")
        values: bool = setting(False, "transform what is attended to")
        step: float = setting(0.5, "share of the layer's result; the rest is its input", above=0, at_most=1)
        norm: bool = setting(True, "normalise every layer's result")
        dropout: float = setting(0.2, "dropout after every layer", at_least=0, below=1)

    presets: ClassVar[Presets] = {
        "default": _preset(4, 64, 0.2, 0.001, 0.01),
        "cora": _preset(8, 64, 0.2, 0.001, 0.01),
        "citeseer": _preset(4, 64, 0.2, 0.001, 1.0),
        "pubmed": _preset(8, 64, 0.2, 0.001, 1e-4),
        "20news": _preset(2, 300, 0.0, 0.0005, 0.1, graph=False),
        "cifar10": _preset(2, 300, 0.0, 0.0001, 0.1, graph=False),
        "stl10": _preset(2, 400, 0.0, 0.0005, 0.1, graph=False),
    }

    def __init__(self, settings: Settings, shape: Shape) -> None:
        super().__init__()
        self.settings, self.shape = settings, shape
        s = settings
        # Under normalisation only the direction of the encoder's output counts. Weight decay then shrinks the matrix
        # unopposed, and a bias, which is not decayed, would come to outweigh it.
        self.encoder = Dense(shape.in_features, s.width, bias=not s.norm)
        self.layers = nn.ModuleList(
            DIFFormerLayer(s.width, s.heads, s.kernel, s.graph, s.values) for _ in range(s.layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(s.width) for _ in range(s.layers + 1)) if s.norm else None
        self.decoder = None if shape.outputs is None else Dense(s.width, shape.outputs)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.encoder.weight]

    def prepare(self, graph: Graph) -> None:
        if self.settings.graph:
            adjacency(graph, like=self.encoder.weight)

    def embed(self, features: Features, graph: Graph) -> Tensor:
        s = self.settings
        x = self._finish(0, self.encoder(features)).relu()
        x = dropout(x, s.dropout, self.training)
        for number, layer in enumerate(self.layers, start=1):
            x = self._finish(number, s.step * layer(x, graph) + (1 - s.step) * x)
            x = dropout(x, s.dropout, self.training)
        return x

    def readout(self, z: Tensor) -> Tensor:
        return built(self.decoder)(z)

    def _finish(self, number: int, x: Tensor) -> Tensor:
        return x if self.norms is None else self.norms[number](x)
