"""Graph attention over all pairs of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hgde.graph import Features, Graph, GraphError
from hgde.kernels.chance import keep_mask
from hgde.kernels.dispatch import use_fused
from hgde.kernels.ops.masked import masked_sums
from hgde.models.base import MODELS
from hgde.models.zoo._blocks import by_rows, dropout_seed
from hgde.models.zoo._common import Presets
from hgde.models.zoo.gat import GAT, GATLayer
from hgde.randomness import make_generator
from hgde.sections import setting

LARGEST = 20_000


def attend_to_all(receives: Tensor, sends: Tensor, h: Tensor, p: float = 0.0) -> Tensor:
    """``sum_j softmax_j(LeakyReLU(s_j + r_i)) h_j`` over all ``j``: ``[N], [N], [N, d] -> [N, d]``.

    ``exp(LeakyReLU(s_j + r_i))`` is ``exp(s_j) exp(r_i)`` where ``s_j > -r_i``, and the same with a fifth of both
    elsewhere. With the nodes in the order of ``s`` every row is therefore a sum of one table up to a cut and of another
    from there on, both the same for all rows: running sums, at a cost of ``N d``. Dropout ``p`` takes a mask for every
    pair and a cost of ``N^2 d``; memory is linear in ``N`` all the same, see :func:`by_rows`.
    """
    rising, order = sends.sort()
    cuts = torch.searchsorted(rising, -receives, right=True)
    # Relative to the largest score of all, so that no exponential is above 1.
    largest = rising[-1].detach()
    gap, reach = rising - largest, receives + largest
    top = nn.functional.leaky_relu(reach, 0.2)
    parts = torch.stack([(0.2 * gap).exp(), gap.exp()], dim=1)
    share = torch.stack([(0.2 * reach - top).exp(), (reach - top).exp()], dim=1)
    table = parts[..., None] * h.index_select(0, order)[:, None]
    total = (share * cut_sums(cuts, parts[..., None]).squeeze(2)).sum(1, keepdim=True)
    sums = masked_cut_sums(cuts, order, table, p) if p else cut_sums(cuts, table)
    return (share[..., None] * sums).sum(1) / total


def cut_sums(cuts: Tensor, table: Tensor) -> Tensor:
    """``sum_{k < cut_i} table_k0`` and ``sum_{k >= cut_i} table_k1``: ``[N], [N, 2, d] -> [N, 2, d]``."""
    below, above = table.double().unbind(1)
    running = [nn.functional.pad(side.cumsum(0), (0, 0, 1, 0)) for side in (below, above.flip(0))]
    before, after = running[0].index_select(0, cuts), running[1].index_select(0, len(table) - cuts)
    return torch.stack([before, after], dim=1).to(table.dtype)


def masked_cut_sums(cuts: Tensor, order: Tensor, table: Tensor, p: float) -> Tensor:
    """:func:`cut_sums` in which each row keeps each node ``order_k`` by chance, times ``1 / (1 - p)``."""
    seed, nodes = dropout_seed(table.device), len(table)

    def block(rows: Tensor, table: Tensor) -> Tensor:
        # The second column numbers the rows, so that every block has dropout of its own.
        generator = make_generator(seed + int(rows[0, 1]), table.device)
        mask = keep_mask(table.new_empty(len(rows), nodes), p, generator)
        if use_fused("auto", mask, table):
            sums: Tensor = masked_sums(mask, rows[:, 0], order, table)
            return sums
        is_below, mask = torch.arange(nodes, device=table.device) < rows[:, :1], mask.index_select(1, order)
        return torch.stack([(mask * is_below) @ table[:, 0], (mask * ~is_below) @ table[:, 1]], dim=1)

    return by_rows(block, torch.stack([cuts, torch.arange(nodes, device=cuts.device)], dim=1), table)


@MODELS.register("dense-gat")
class DenseGAT(GAT):
    """The GAT on the complete graph, ``y_i = h_i + sum_j a_ij h_j`` over all ``j``. For at most 20,000 nodes.

    Scores ``LeakyReLU(s_j + r_i)`` order the nodes ``j`` alike for every ``i``, so on a complete graph all nodes
    receive almost the same sum; the node's own ``h_i`` is added to tell them apart. Dropout acts on the input; on the
    weights, of which a node has thousands, it hardly changes their sum and costs ``N^2``, so that is a choice.

    >>> import torch
    >>> from hgde import Graph
    >>> from hgde.models import Shape
    >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> model = DenseGAT(DenseGAT.Settings(), Shape(in_features=5, num_nodes=4, outputs=2))
    >>> model(torch.randn(4, 5), path).shape
    torch.Size([4, 2])
    """

    paper = "Veličković et al., ICLR 2018, on the complete graph as in Wu et al., DIFFormer, ICLR 2023"

    @dataclass(frozen=True)
    class Settings(GAT.Settings):
        dropout: float = setting(0.5, "dropout on the input of every layer", at_least=0, below=1)
        attention_dropout: float = setting(
            0.0, "dropout on the attention weights; makes the cost quadratic in the nodes", at_least=0, below=1
        )

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
        p = self.settings.attention_dropout if self.training else 0.0
        heads = [attend_to_all(receives[:, i], sends[:, i], h[:, i], p) for i in range(layer.heads)]
        y = h + torch.stack(heads, dim=1)
        return (y.mean(1) if layer.mean else y.flatten(1)) + layer.bias
