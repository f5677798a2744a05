# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
"""The flow along edges with fixed weights through the Triton kernels, as operations registered with torch."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from hgde.graph import Graph
from hgde.kernels import reference
from hgde.kernels.ops.register import like, operation, ordered_sum
from hgde.kernels.reference import Activation
from hgde.kernels.triton import edges
from hgde.kernels.triton.around import around

_DEVICES = ("CPU", "CUDA")


def _conformal(z: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """``1 - c|z|^2`` of every node, held at the limit, and whether it is not held."""
    points = z.double()
    b = reference.conformal(points, c, z.dtype)[:, 0]
    return b.contiguous(), (b == 1 - c * points.square().sum(-1)).double()


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    for_z, for_c = edge_sum_backward(grad, *ctx.saved_tensors)
    return for_z, None, for_c, None, None


@operation(
    "triton_edge_sum(Tensor z, Tensor weight, Tensor c, Tensor indptr, Tensor indices) -> Tensor",
    fake=lambda z, weight, c, indptr, indices: like(z.double()),
    backward=_gradients,
    save=_save,
    devices=_DEVICES,
)
def edge_sum(z: Tensor, weight: Tensor, c: Tensor, indptr: Tensor, indices: Tensor) -> Tensor:
    """``v_i = sum_j a_ij log_{z_i}(z_j)`` in double precision; the weights are constants."""
    out = torch.empty(z.shape, dtype=torch.float64, device=z.device)
    if z.numel():
        z, c = z.contiguous(), c.double().reshape(1).to(z.device)
        given = (z, _conformal(z, c)[0], weight.contiguous(), indptr, indices, c, out, z.shape[1])
        edges.tangent_sum_kernel[(len(z),)](*given, CHUNK=edges.CHUNK, WIDTH=triton.next_power_of_2(z.shape[1]))
    return out


@operation(
    "triton_edge_sum_backward(Tensor grad, Tensor z, Tensor weight, Tensor c, Tensor indptr, Tensor indices)"
    " -> (Tensor, Tensor)",
    fake=lambda grad, z, weight, c, indptr, indices: (like(z), like(c)),
    devices=_DEVICES,
)
def edge_sum_backward(
    grad: Tensor, z: Tensor, weight: Tensor, c: Tensor, indptr: Tensor, indices: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of ``z`` and ``c``: every node gathers from its neighbours, nothing is scattered."""
    gz = torch.zeros(z.shape, dtype=torch.float64, device=z.device)
    gc = torch.zeros(len(z), dtype=torch.float64, device=z.device)
    if z.numel():
        z, number = z.contiguous(), c.double().reshape(1).to(z.device)
        g, near = grad.double().contiguous(), around(indptr, indices)
        b, inside = _conformal(z, number)
        a = (g * z).sum(-1)
        graph = (near.start, near.neighbours, near.arriving, near.leaving)
        given = (z, g, b, inside, a, weight.contiguous(), *graph, number, gz, gc, z.shape[1])
        width = triton.next_power_of_2(z.shape[1])
        edges.tangent_sum_backward_kernel[(len(z),)](*given, CHUNK=edges.CHUNK, WIDTH=width)
    return gz.to(z.dtype), ordered_sum(gc).to(c.dtype).reshape(c.shape).to(c.device)


def tangent_sum(z: Tensor, graph: Graph, values: Tensor, c: Tensor | float) -> Tensor:
    """``v_i = sum_j a_ij log_{z_i}(z_j)`` for constant weights ``values [E]``: ``[N, d]``, in double precision.

    >>> from hgde import Graph
    >>> z, pair = torch.zeros(2, 2, device="cuda"), Graph.from_edges([(0, 1)]).to("cuda")  # doctest: +SKIP
    >>> tangent_sum(z, pair, torch.full((2,), 0.5, device="cuda"), c=1.0).dtype  # doctest: +SKIP
    torch.float64
    """
    if values.requires_grad:
        raise ValueError("the Triton step takes constant weights; detach them, or use hgde.kernels.tangent_sum")
    number = c if isinstance(c, Tensor) else torch.tensor(c, dtype=torch.float64, device=z.device)
    out: Tensor = edge_sum(z, values, number, graph.indptr, graph.indices)
    return out


def diffuse(
    z: Tensor,
    graph: Graph,
    values: Tensor,
    c: Tensor | float,
    z0: Tensor | None = None,
    eta: Tensor | None = None,
    activation: Activation = "identity",
) -> Tensor:
    """The flow ``F(z)`` of :func:`hgde.kernels.diffuse` for constant weights ``values [E]``.

    The pass over the edges and its gradient are Triton's; what belongs to a row (activation, exponential, residual)
    is plain torch in double precision, which ``torch.compile`` fuses. Saved for the backward pass: the points, and what
    torch keeps of the row maps.

    >>> from hgde import Graph
    >>> z, pair = torch.zeros(2, 2, device="cuda"), Graph.from_edges([(0, 1)]).to("cuda")  # doctest: +SKIP
    >>> diffuse(z, pair, torch.full((2,), 0.5, device="cuda"), c=1.0).shape  # doctest: +SKIP
    torch.Size([2, 2])
    """
    return reference.advance(z, tangent_sum(z, graph, values, c), c, z0, eta, activation)
