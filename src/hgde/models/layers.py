"""Layers between features, points and scores: hyperbolic linear, encoder, decoder, on every space."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from hgde.geometry import Euclidean, Lorentz, Manifold, PoincareBall, Product, ball, manifold_parameter
from hgde.graph import Features, SparseFeatures
from hgde.kernels import decode, encode, exp_origin, log_origin, sparse_matmul, translate_tangent
from hgde.kernels.chance import dropout as drop
from hgde.kernels.reference import resolve_activation


class HyperbolicLinear(nn.Module):
    """Matrix product and translation by a point (eqs. mobius-feature-transformation, mobius-bias-addition).

    It takes vectors ``u`` in the tangent space at the origin, because both of its callers have them at hand: features
    are what the encoder maps with ``exp_o``, and ``log_o`` of that is the features again. So
    ``exp_o(log_o(exp_o(x)) W)`` is ``z = exp_o(x W)``: one product, sparse when ``x`` is. The bias is a point ``b``,
    and ``exp_z(PT_{o -> z}(log_o b))`` is the translation by it, on the ball ``z ⊕ b``.

    Every space has the same parameters. On the ball and on Lorentz ``b`` is kept as the point ``sqrt(c) b`` of the unit
    ball, where Riemannian optimisers move it: a trained curvature shrinks or widens the ball and would leave a point
    with fixed coordinates outside it. Elsewhere it is kept as ``log_o b``, which in flat space is ``b`` itself.

    >>> import torch
    >>> from hgde import PoincareBall
    >>> layer = HyperbolicLinear(4, 2, PoincareBall())
    >>> points = layer(torch.randn(5, 4))
    >>> points.shape, bool((points.norm(dim=1) < 1).all())
    (torch.Size([5, 2]), True)
    """

    def __init__(self, in_features: int, out_features: int, manifold: Manifold, bias: bool = True) -> None:
        super().__init__()
        self.manifold = manifold
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        nn.init.xavier_uniform_(self.weight)
        self.bias: nn.Parameter | None = None
        if bias:
            start = torch.zeros(out_features)
            is_curved = isinstance(manifold, PoincareBall | Lorentz)
            self.bias = manifold_parameter(start, PoincareBall(1.0)) if is_curved else nn.Parameter(start)

    def forward(self, u: Features, dropout: float = 0.0) -> Tensor:
        """Points ``[N, out]`` from tangent vectors ``[N, in]`` at the origin; ``dropout`` acts on ``u`` in training."""
        return self._translated(self.manifold.expmap0(self._product(u, dropout)))

    def tangent(self, u: Features, dropout: float = 0.0) -> Tensor:
        """``log_o`` of :meth:`forward`, ``[N, out]``, at a fraction of its cost: neither caller needs the points."""
        product, manifold = self._product(u, dropout), self.manifold
        if self.bias is None:
            return product
        if isinstance(manifold, PoincareBall):
            c = manifold.c
            return translate_tangent(product, self.bias * c.rsqrt(), c)
        if isinstance(manifold, Euclidean):
            return product + self.bias
        return manifold.logmap0(self._translated(manifold.expmap0(product)))

    def _translated(self, z: Tensor) -> Tensor:
        if self.bias is None:
            return z
        manifold = self.manifold
        along: Tensor = self.bias
        if isinstance(manifold, PoincareBall | Lorentz):
            along = ball.logmap0(along, 1.0) * manifold.c.rsqrt()
        return manifold.expmap(z, manifold.transport0(z, along.expand(*z.shape[:-1], -1)))

    def _product(self, u: Features, dropout: float) -> Tensor:
        if isinstance(u, SparseFeatures):
            return sparse_matmul(u, self.weight, dropout, self.training)
        return drop(u, dropout, self.training) @ self.weight

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, bias={self.bias is not None}"


class Encoder(nn.Module):
    """``z(0) = exp_o^t(act(log_o^s(exp_o^s(x W) ⊕ b)))``: linear layer on the space ``s``, start on the space ``t``.

    Args:
        layers: how many linear layers on the source space, each followed by the activation.
        dropout: on the features.
        state_dropout: on what every layer gives, so also on the tangent vectors that become the start.
        bends_last: whether the activation follows the last layer too.
        inner_width: of the layers before the last; that of the points by default.

    >>> import torch
    >>> from hgde import PoincareBall
    >>> ball = PoincareBall()
    >>> Encoder(4, 2, ball, ball, layers=2)(torch.randn(5, 4)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        in_features: int,
        width: int,
        source: Manifold,
        target: Manifold,
        activation: str = "identity",
        dropout: float = 0.0,
        layers: int = 1,
        state_dropout: float = 0.0,
        bends_last: bool = True,
        inner_width: int | None = None,
    ) -> None:
        super().__init__()
        inner = width if inner_width is None else inner_width
        widths = [*(inner for _ in range(layers - 1)), width]
        self.linear = HyperbolicLinear(in_features, widths[0], source)
        self.hidden = nn.ModuleList(HyperbolicLinear(*pair, source) for pair in pairwise(widths))
        self.target, self.activation = target, activation
        self.dropout, self.state_dropout, self.bends_last = dropout, state_dropout, bends_last

    def forward(self, features: Features, rows: Tensor | None = None) -> Tensor:
        """Points of the target space, ``[N, coordinates]``; with ``rows``, those of some nodes, none of them twice."""
        only, source, target = self.linear, self.linear.manifold, self.target
        drops_states = self.training and self.state_dropout > 0
        if isinstance(features, SparseFeatures) and only.bias is not None and not (self.hidden or drops_states):
            bent = self.activation if self.bends_last else "identity"
            if isinstance(source, PoincareBall) and isinstance(target, PoincareBall):
                spaces = source.c, target.c
                return encode(features, only.weight, only.bias, *spaces, bent, self.dropout, self.training, rows=rows)
        tangent = self.activate(self.linear.tangent(features, self.dropout), self.linear)
        for layer in self.hidden:
            assert isinstance(layer, HyperbolicLinear)
            tangent = self.activate(layer.tangent(tangent), layer)
        tangent = tangent if rows is None else tangent.index_select(0, rows)
        if isinstance(self.target, PoincareBall):
            return exp_origin(tangent, self.target.c)
        return self.target.expmap0(tangent)

    @torch.no_grad()
    def scale_to(self, features: Features, distance: float) -> None:
        """Scale each layer's fresh weights so that what it gives has, on average, the length of points so far out.

        A tangent vector ``v`` at the origin leads to a point at the distance ``2|v|``.
        """
        was_training = self.training
        self.eval()
        given: Features = features
        for layer in (self.linear, *self.hidden):
            assert isinstance(layer, HyperbolicLinear)
            length = float(self.activate(layer.tangent(given), layer).norm(dim=-1).mean())
            if length > 0:
                layer.weight.mul_(0.5 * distance / length)
            given = self.activate(layer.tangent(given), layer)
        self.train(was_training)

    def activate(self, tangent: Tensor, layer: nn.Module) -> Tensor:
        """What a layer hands on of its tangent vectors: activation (the last may have none) and dropout."""
        is_last = layer is (self.hidden[-1] if len(self.hidden) else self.linear)
        bent = tangent if is_last and not self.bends_last else resolve_activation(self.activation)(tangent)
        return drop(bent, self.state_dropout, self.training)

    def extra_repr(self) -> str:
        return f"activation={self.activation}, dropout={self.dropout}, state_dropout={self.state_dropout}"


class NodeDecoder(nn.Module):
    """Scores: a hyperbolic linear layer on ``log_o z``, read off in the tangent space at the origin.

    A product is of one width, that of its points; its scores, of another, are read off in flat space.

    >>> from hgde import PoincareBall
    >>> ball = PoincareBall()
    >>> NodeDecoder(2, 3, ball)(ball.random(5, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(self, width: int, outputs: int, manifold: Manifold, dropout: float = 0.0) -> None:
        super().__init__()
        self.manifold = manifold
        space = Euclidean(2.0) if isinstance(manifold, Product) else manifold
        self.linear = HyperbolicLinear(width, outputs, space)
        self.dropout = dropout

    def forward(self, z: Tensor) -> Tensor:
        """``[N, outputs]``: class logits or values."""
        layer, drops = self.linear, self.training and self.dropout > 0
        if isinstance(layer.manifold, PoincareBall) and layer.bias is not None and not drops:
            return decode(z, layer.weight, layer.bias, layer.manifold.c)
        return self.linear.tangent(to_tangent(z, self.manifold), self.dropout)


def to_tangent(z: Tensor, manifold: Manifold) -> Tensor:
    """``log_o z``, ``[N, width]``, in one pass each way on the ball."""
    return log_origin(z, manifold.c) if isinstance(manifold, PoincareBall) else manifold.logmap0(z)
