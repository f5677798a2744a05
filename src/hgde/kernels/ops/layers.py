"""What comes before and after diffusion: features to points, maps at the origin, points to scores of links.

Each checks its arguments and is served by the compiled kernels or by plain torch.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from hgde import randomness
from hgde.compiler.load import prepare
from hgde.geometry import ball
from hgde.graph import SparseFeatures
from hgde.kernels import reference
from hgde.kernels.backend import Backend
from hgde.kernels.cpu.sizes import EXP, LOG, TRANSLATE
from hgde.kernels.dispatch import use_fused
from hgde.kernels.ops import decoding, encoding, links, maps, sparse
from hgde.kernels.ops.arguments import curvature, needs_gradient, report
from hgde.kernels.ops.diffusion import ACTIVATION_CODES
from hgde.kernels.reference import resolve_activation


def link_logits(
    z: Tensor,
    pairs: Tensor,
    c: Tensor | float,
    r: Tensor | float = 2.0,
    t: Tensor | float = 1.0,
    backend: Backend = "auto",
) -> Tensor:
    """``(r - d(z_i, z_j)^2) / t`` of the pairs ``[2, m]`` of points ``z [N, d]``: log-odds of links, ``[m]``.

    Cost ``m d``. The fused path stores three numbers for each pair; the gradient of a point is added up in the order of
    its pairs, so it has the same bits at any number of threads.

    >>> import torch
    >>> z = torch.tensor([[0.0, 0.0], [0.5, 0.0]])
    >>> logit = link_logits(z, torch.tensor([[0], [1]]), c=1.0)      # 2 - (2 artanh 0.5)^2
    >>> round(logit.item(), 4)
    0.7931
    """
    _check_pairs(pairs)
    c = curvature(c, z)
    if z.dim() == 2 and use_fused(backend, z):
        if needs_gradient(z, c, *(x for x in (r, t) if isinstance(x, Tensor))):
            prepare(links.KERNELS, z.dtype)
        out: Tensor = links.link_logits(z, pairs, c, curvature(r, z), curvature(t, z))[0]
        return out
    return reference.link_logits(z, pairs, c, r, t)


def pair_squares(z: Tensor, pairs: Tensor, backend: Backend = "auto") -> Tensor:
    """``|z_i - z_j|^2`` of the pairs ``[2, m]`` of points ``z [N, d]`` of flat space, ``[m]``.

    Cost ``m d``; the fused path stores nothing for the pairs.

    >>> import torch
    >>> pair_squares(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([[0], [1]])).item()
    25.0
    """
    _check_pairs(pairs)
    if z.dim() == 2 and use_fused(backend, z):
        if needs_gradient(z):
            prepare(links.FLAT_KERNELS, z.dtype)
        out: Tensor = links.pair_squares(z, pairs)
        return out
    return reference.pair_squares(z, pairs)


def _check_pairs(pairs: Tensor) -> None:
    if pairs.dim() != 2 or pairs.shape[0] != 2 or pairs.is_floating_point():
        raise ValueError(f"pairs must be whole numbers [2, m], got {pairs.dtype} {list(pairs.shape)}")


def _at_origin(x: Tensor, c: Tensor, point: Tensor | None, kind: int) -> Tensor:
    if needs_gradient(x, c, point):
        prepare(("origin.forward", "origin.backward"), x.dtype)
    out, projected = maps.at_origin(x, c, point, kind)
    if kind == EXP:
        report(projected)
    result: Tensor = out
    return result


def exp_origin(u: Tensor, c: Tensor, backend: Backend = "auto") -> Tensor:
    """``exp_o(u)`` for ``u [N, d]``, projected into the ball; one pass each way where the fused kernels serve.

    >>> import torch
    >>> round(exp_origin(torch.tensor([[0.5, 0.0]]), torch.tensor(1.0))[0, 0].item(), 4)      # tanh 0.5
    0.4621
    """
    if u.dim() == 2 and use_fused(backend, u):
        return _at_origin(u, c, None, EXP)
    return ball.expmap0(u, c)


def log_origin(z: Tensor, c: Tensor, backend: Backend = "auto") -> Tensor:
    """``log_o(z)`` for ``z [N, d]``; one pass each way where the fused kernels serve.

    >>> import torch
    >>> round(log_origin(torch.tensor([[0.5, 0.0]]), torch.tensor(1.0))[0, 0].item(), 4)      # artanh 0.5
    0.5493
    """
    if z.dim() == 2 and use_fused(backend, z):
        return _at_origin(z, c, None, LOG)
    return ball.logmap0(z, c)


def translate_tangent(u: Tensor, point: Tensor, c: Tensor, backend: Backend = "auto") -> Tensor:
    """``log_o(exp_o(u) ⊕ b)`` for vectors ``u [N, d]`` and one point ``b [d]`` (eq. mobius-bias-addition).

    The result is ``alpha u + beta b`` with two scalars for each row that depend on ``|u|^2``, ``<u, b>`` and ``|b|^2``
    alone: ``e = T u`` with ``T = tanh(r)/r``, ``B_e = 1/cosh^2 r``, and with ``D = B_e B_b + c|e + b|^2``
    ``e ⊕ b = ((B_e + c|e + b|^2) e + B_e b) / D``. So two operations of size ``N d``, the rest on columns.

    >>> import torch
    >>> u, o = torch.tensor([[0.5, 0.1]]), torch.zeros(2)
    >>> torch.allclose(translate_tangent(u, o, torch.tensor(1.0)), u)      # by the origin: nothing moves
    True
    """
    if use_fused(backend, u, point):
        return _at_origin(u, c, point, TRANSLATE)
    return reference.translate_tangent(u, point, c)


def _drop_values(values: Tensor, p: float, generator: torch.Generator | None = None) -> Tensor:
    """Each value set to zero with probability ``p``, the rest divided by ``1 - p``."""
    if generator is None:
        return functional.dropout(values, p)
    keep = torch.rand(values.shape, generator=generator, device=values.device) >= p
    return values * keep / (1 - p) if p < 1 else torch.zeros_like(values)


def sparse_matmul(
    features: SparseFeatures,
    weight: Tensor,
    dropout: float = 0.0,
    training: bool = False,
    generator: torch.Generator | None = None,
    backend: Backend = "auto",
) -> Tensor:
    """``dropout(features) @ weight``: ``[N, F] x [F, d] -> [N, d]``, differentiable in ``weight``.

    Cost ``nnz d`` forward and backward. The backward pass gathers over the transpose, which is worked out once per
    pattern, so its result does not depend on the number of threads.

    >>> import scipy.sparse
    >>> import torch
    >>> from hgde import SparseFeatures
    >>> words = SparseFeatures.from_scipy(scipy.sparse.eye(3, format="csr"))
    >>> sparse_matmul(words, torch.ones(3, 2)).tolist()
    [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    """
    if weight.dim() != 2 or weight.shape[0] != features.shape[1]:
        raise ValueError(f"weight must be [{features.shape[1]}, width] for these features, got {list(weight.shape)}")
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout is a probability between 0 and 1, got {dropout}")
    values = features.values
    drops = training and dropout > 0
    generator = randomness.generator() if generator is None else generator
    if not values.requires_grad and use_fused(backend, values, weight):
        if drops:
            prepare(("sparse.drop", "sparse.product"), values.dtype)
            values = sparse.drop(values, sparse.draw_keys(generator), dropout)
        out: Tensor = sparse.sparse_product(weight, values, features.indptr, features.indices, features.shape[1], False)
        return out
    if drops:
        values = _drop_values(values, dropout, generator)
    gathered = values[:, None] * weight[features.indices]
    return weight.new_zeros(features.shape[0], weight.shape[1]).index_add(0, features.rows, gathered)


def encode(
    features: SparseFeatures,
    weight: Tensor,
    bias: Tensor,
    c: Tensor,
    c_out: Tensor,
    activation: str = "identity",
    dropout: float = 0.0,
    training: bool = False,
    backend: Backend = "auto",
    rows: Tensor | None = None,
) -> Tensor:
    """``exp_o^t(act(log_o^s(exp_o^s(dropout(x) W) ⊕ b)))``: a layer on the ball ``s`` of curvature ``-c``, then points
    of the ball ``t`` of curvature ``-c_out``.

    Shapes: ``x [N, F]``, ``weight [F, d]``, ``bias [d]`` the point ``sqrt(c) b`` of the unit ball; result ``[N, d]``,
    or with ``rows [n]``, different nodes, ``[n, d]`` of these: dropout takes from them what it takes among all.
    Cost ``nnz d`` each way. The fused path is one operation and keeps the product alone.

    >>> import scipy.sparse
    >>> import torch
    >>> from hgde import SparseFeatures
    >>> words, c = SparseFeatures.from_scipy(0.5 * scipy.sparse.eye(2, format="csr")), torch.tensor(1.0)
    >>> points = encode(words, torch.eye(2), torch.zeros(2), c, c)      # tanh 0.5 along each axis
    >>> round(points[0, 0].item(), 4)
    0.4621
    """
    values, drops = features.values, training and dropout > 0
    if not values.requires_grad and dropout < 1 and use_fused(backend, values, weight, bias):
        if needs_gradient(weight, bias, c, c_out):
            prepare(encoding.KERNELS, weight.dtype)
        keys = sparse.draw_keys(randomness.generator()) if drops else None
        given = (values, keys, features.indptr, features.indices, rows, weight, bias, c, c_out)
        out, _, projected = encoding.encode(*given, dropout, ACTIVATION_CODES[activation])
        report(projected)
        result: Tensor = out
        return result
    product = sparse_matmul(features, weight, dropout, training, backend=backend)
    tangent = translate_tangent(product, bias * c.rsqrt(), c, backend)
    points = exp_origin(resolve_activation(activation)(tangent), c_out, backend)
    return points if rows is None else points.index_select(0, rows)


def decode(z: Tensor, weight: Tensor, bias: Tensor, c: Tensor, backend: Backend = "auto") -> Tensor:
    """``log_o(exp_o(log_o(z) W) ⊕ b)``: scores of points ``z [N, d]`` by a layer ``weight [d, k]``, ``bias [k]``.

    The bias is the point ``sqrt(c) b`` of the unit ball. One operation on the fused path.

    >>> import torch
    >>> z = torch.tensor([[0.5, 0.0]])
    >>> round(decode(z, torch.eye(2), torch.zeros(2), torch.tensor(1.0))[0, 0].item(), 4)      # artanh 0.5
    0.5493
    """
    if z.dim() == 2 and use_fused(backend, z, weight, bias):
        if needs_gradient(z, weight, bias, c):
            prepare(decoding.KERNELS, z.dtype)
        out: Tensor = decoding.decode(z, weight, bias, c)[0]
        return out
    return translate_tangent(log_origin(z, c, backend) @ weight, bias * c.rsqrt(), c, backend)
