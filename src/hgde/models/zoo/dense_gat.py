"""Graph attention over all pairs of nodes."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph, GraphError
from hgde.kernels.chance import keep_mask
from hgde.models.base import MODELS
from hgde.models.zoo._blocks import by_rows, dropout_seed
from hgde.models.zoo._common import Presets
from hgde.models.zoo.gat import GAT, GATLayer
from hgde.randomness import make_generator

LARGEST = 20_000


def attend_to_all(receives: Tensor, sends: Tensor, h: Tensor, p: float = 0.0) -> Tensor:
    """``sum_j softmax_j(LeakyReLU(s_j + r_i)) h_j`` over all ``j``: ``[N], [N], [N, d] -> [N, d]``.

    Cost ``N^2 d``; memory linear in ``N``, see :func:`by_rows`.
    """
    seed = dropout_seed(h.device) if p else 0

    def block(rows: Tensor, sends: Tensor, h: Tensor) -> Tensor:
        weights = torch.softmax(nn.functional.leaky_relu(rows[:, :1] + sends, 0.2), dim=1)
        if p:
            weights = weights * keep_mask(weights, p, make_generator(seed + int(rows[0, 1]), h.device))
        return weights @ h

    # The second column numbers the rows, so that every block has dropout of its own.
    numbered = torch.stack([receives, torch.arange(len(receives), dtype=h.dtype, device=h.device)], dim=1)
    return by_rows(block, numbered, sends, h)


@MODELS.register("dense-gat")
class DenseGAT(GAT):
    """The GAT on the complete graph, ``y_i = h_i + sum_j a_ij h_j`` over all ``j``. For at most 20,000 nodes.

    Scores ``LeakyReLU(s_j + r_i)`` order the nodes ``j`` alike for every ``i``, so on a complete graph all nodes
    receive almost the same sum; the node's own ``h_i`` is added to tell them apart.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = DenseGAT(DenseGAT.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Veličković et al., ICLR 2018, on the complete graph as in Wu et al., DIFFormer, ICLR 2023"
    presets: ClassVar[Presets] = {
        "default": {
            "model": {"width": 64, "heads": 4, "layers": 2, "dropout": 0.5},
            "training": {"lr": 0.005, "weight_decay": 5e-4, "epochs": 300},
        }
    }

    def prepare(self, graph: Graph) -> None:
        if graph.num_nodes > LARGEST:
            raise GraphError(
                f"dense-gat compares all pairs and takes at most {LARGEST:,} nodes, got {graph.num_nodes:,}; "
                "try difformer with the kernel simple, whose cost is linear, or gat"
            )

    def message(self, layer: nn.Module, x: Features, graph: Graph) -> Tensor:
        assert isinstance(layer, GATLayer)
        self.prepare(graph)
        p = self.settings.dropout
        h = layer.linear(x, p).view(graph.num_nodes, layer.heads, -1)
        sends, receives = (h * layer.source).sum(-1), (h * layer.target).sum(-1)
        p = p if self.training else 0.0
        heads = [attend_to_all(receives[:, i], sends[:, i], h[:, i], p) for i in range(layer.heads)]
        y = h + torch.stack(heads, dim=1)
        return (y.mean(1) if layer.mean else y.flatten(1)) + layer.bias
