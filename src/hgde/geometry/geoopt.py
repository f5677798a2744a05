"""Both ways between this package and geoopt: integrate on its manifolds, and let its optimisers train our points."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from hgde.geometry import numerics
from hgde.geometry.contract import Manifold, derivative
from hgde.geometry.euclidean import Euclidean
from hgde.geometry.poincare import PoincareBall

Differential = Literal["closed", "autograd", "transport"]


def to_geoopt(manifold: Manifold) -> Any:
    """The geoopt manifold for ``geoopt.ManifoldParameter`` and its optimisers.

    For the ball it is a ``geoopt.PoincareBall``, for the other spaces a view that answers with our maps. Either reads
    our curvature at every call, so a trained curvature is shared, not copied.

    >>> from hgde import PoincareBall
    >>> to_geoopt(PoincareBall(c=2.0)).name
    'PoincareBall'
    """
    import geoopt

    if isinstance(manifold, GeooptManifold):
        return manifold.base
    if isinstance(manifold, Euclidean) and manifold.scale == 1.0:
        return geoopt.Euclidean(ndim=1)

    from hgde.geometry._geoopt_views import SharedBall, SharedManifold

    return SharedBall(manifold) if isinstance(manifold, PoincareBall) else SharedManifold(manifold)


def manifold_parameter(points: Tensor, manifold: Manifold) -> Any:
    """``points`` as a ``geoopt.ManifoldParameter``, to be trained by geoopt's Riemannian optimisers.

    >>> import geoopt, torch
    >>> from hgde import PoincareBall
    >>> x = manifold_parameter(torch.tensor([0.5, 0.0]), PoincareBall())
    >>> optimiser = geoopt.optim.RiemannianSGD([x], lr=0.1)
    >>> x.square().sum().backward()
    >>> optimiser.step()
    >>> bool(x.norm() < 0.5)
    True
    """
    import geoopt

    return geoopt.ManifoldParameter(points, manifold=to_geoopt(manifold))


def _sectional_curvature(base: Any) -> Tensor | float | None:
    """The constant sectional curvature of a geoopt manifold, if it has one."""
    import geoopt

    if isinstance(base, geoopt.Euclidean):
        return 0.0
    if isinstance(base, geoopt.Sphere):
        return 1.0
    if isinstance(base, geoopt.Lorentz):
        curvature: Tensor = -1.0 / base.k
        return curvature
    if isinstance(base, geoopt.Stereographic):
        stereographic: Tensor = base.k
        return stereographic
    return None


class GeooptManifold(Manifold):
    """Any geoopt manifold behind our contract, at the order its maps allow.

    ``differential`` says how slopes are carried back to a step's start; left out, the best one known for the manifold
    is taken.

    * ``"closed"``: the closed form of constant curvature, from transport and metric. Euclidean, sphere, Lorentz,
      stereographic models, and products of such. No bound on the order.
    * ``"autograd"``: the differential of ``logmap`` by forward-mode differentiation, for any manifold whose ``logmap``
      is an inverse of ``expmap``. No bound on the order, rounding as good as geoopt's logarithm.
    * ``"transport"``: geoopt's vector transport alone. geoopt does not promise it to be parallel (on the sphere it is a
      projection), so ``max_order`` is 2.

    >>> import geoopt, torch
    >>> ball = GeooptManifold(geoopt.PoincareBall(c=1.0))
    >>> ball.expmap(torch.zeros(2), torch.tensor([0.5, 0.0])).shape
    torch.Size([2])
    """

    def __init__(self, base: Any, differential: Differential | None = None) -> None:
        super().__init__()
        import geoopt

        self.base: Any = base
        self.parts: nn.ModuleList | None = None
        if isinstance(base, geoopt.ProductManifold):
            self.parts = nn.ModuleList(GeooptManifold(part, differential) for part in base.manifolds)
        # geoopt takes the arc cosine of a clamped product: no distance below 4e-4, and logarithms of that length.
        self._is_sphere = isinstance(base, geoopt.Sphere)
        closed = self.parts is not None or _sectional_curvature(base) is not None
        if differential == "closed" and not closed:
            raise ValueError(
                f"{base.name} has no constant curvature known here; try differential='autograd' or 'transport'"
            )
        self.differential: Differential = differential or ("closed" if closed else "autograd")
        self.has_dexp = self.differential != "transport"
        self.max_order = 2 if self.differential == "transport" else None
        if self.parts is not None:
            adapters = [part for part in self.parts if isinstance(part, GeooptManifold)]
            self.max_order = min((part.max_order for part in adapters if part.max_order is not None), default=None)
            self.has_dexp = self.max_order is None

    def _split(self, *tensors: Tensor) -> list[list[Tensor]]:
        return [[self.base.take_submanifold_value(t, i) for t in tensors] for i in range(self.base.n_manifolds)]

    def _pack(self, parts: list[Tensor]) -> Tensor:
        packed: Tensor = self.base.pack_point(*parts)
        return packed

    def _map(self, name: str, *tensors: Tensor) -> Tensor:
        assert self.parts is not None
        return self._pack(
            [getattr(part, name)(*pieces) for part, pieces in zip(self.parts, self._split(*tensors), strict=True)]
        )

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        if self._is_sphere:
            # geoopt's has no gradient at v = 0, where a node without neighbours is.
            angle = numerics.safe_norm(v)
            return torch.cos(angle) * x + torch.sinc(angle / torch.pi) * v
        result: Tensor = self.base.expmap(x, v)
        return result

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        if self._is_sphere:
            along: Tensor = self.base.proju(x, y - x)
            return _angle_over_sine(numerics.squared_norm(y - x)) * along
        if self.parts is not None:
            return self._map("logmap", x, y)
        result: Tensor = self.base.logmap(x, y)
        return result

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        if self.parts is not None:
            return self._map("transport", x, y, v)
        if self._is_sphere and self.differential != "transport":
            # geoopt projects; along the great circle the parallel transport is the rotation of the plane of x and y.
            y_v = (y * v).sum(-1, keepdim=True)
            return v - y_v / (1.0 + (x * y).sum(-1, keepdim=True)) * (x + y)
        result: Tensor = self.base.transp(x, y, v)
        return result

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        # Without keepdim, geoopt 0.5's stereographic model broadcasts points against each other.
        result: Tensor = self.base.inner(x, u, v, keepdim=True)
        return result.reshape(result.shape[: result.dim() - self.base.ndim])

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        if self._is_sphere:
            return 2.0 * torch.asin((0.5 * numerics.safe_norm(y - x)).clamp_max(1.0)).squeeze(-1)
        if self.parts is not None:
            squares = [
                part.dist(*pair).square()
                for part, pair in zip(self.parts, self._split(x, y), strict=True)
                if isinstance(part, GeooptManifold)
            ]
            return numerics.safe_sqrt(torch.stack(squares).sum(dim=0))
        result: Tensor = self.base.dist(x, y)
        return result

    def project(self, x: Tensor) -> Tensor:
        result: Tensor = self.base.projx(x)
        return result

    def tangent(self, x: Tensor, u: Tensor) -> Tensor:
        result: Tensor = self.base.proju(x, u)
        return result

    def egrad2rgrad(self, x: Tensor, g: Tensor) -> Tensor:
        # A copy: geoopt's hyperboloid turns the gradient's time coordinate round in place.
        result: Tensor = self.base.egrad2rgrad(x, g.clone())
        return result

    def dexp(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        end = self.expmap(x, v) if y is None else y
        if self.parts is not None:
            return self._map("dexp", x, v, w, end)
        if self.differential == "transport":
            return self.transport(x, end, w)
        if self.differential == "autograd":
            return derivative(lambda u: self.expmap(x, u), v, w)
        return self.transport(x, end, self._across(x, v, w, inverse=False))

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        end = self.expmap(x, v) if y is None else y
        if self.parts is not None:
            return self._map("dexp_inv", x, v, w, end)
        if self.differential == "transport":
            return self.transport(end, x, w)
        if self.differential == "autograd":
            return derivative(lambda point: self.logmap(x, point), end, w)
        return self._across(x, v, self.transport(end, x, w), inverse=True)

    def _across(self, x: Tensor, v: Tensor, w: Tensor, *, inverse: bool) -> Tensor:
        """Multiply the part of ``w`` across ``v`` by ``sinh r / r`` or its inverse; by sines in positive curvature."""
        curvature = _sectional_curvature(self.base)
        if curvature is None or (isinstance(curvature, float) and curvature == 0.0):
            return w
        v_v: Tensor = self.base.inner(x, v, v, keepdim=True)
        w_v: Tensor = self.base.inner(x, w, v, keepdim=True)
        q = -curvature * v_v
        if inverse:
            return w + curvature * _signed(numerics.shrink, _shrink_sphere, q) * (v_v * w - w_v * v)
        return w - curvature * _signed(numerics.stretch, _stretch_sphere, q) * (v_v * w - w_v * v)

    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        # Where geoopt has no point to name it draws one from a fixed seed, another one for every shape.
        one: Tensor = self.base.origin(*size[-self.base.ndim :], dtype=dtype, device=device)
        return one.as_subclass(Tensor).detach().expand(size)

    def frame0(self, coordinates: int, *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Unit vectors made tangent at geoopt's origin, then orthonormal in its metric."""
        self._require_vectors()
        o = self.origin(coordinates, coordinates, dtype=dtype, device=device)
        tangent: Tensor = self.base.proju(o, torch.eye(coordinates, dtype=dtype, device=device))
        frame: list[Tensor] = []
        for v in tangent:
            # Twice: one pass of Gram-Schmidt loses orthogonality when v is nearly in the span.
            for _ in range(2):
                for e in frame:
                    v = v - self.inner(o[0], v, e) * e
            length = self.norm(o[0], v)
            if float(length) > 1e-3:
                frame.append(v / length)
        return torch.stack(frame).detach()

    def dimension(self, coordinates: int) -> int:
        return len(self.frame0(coordinates, dtype=torch.float64, device=torch.device("cpu")))

    def ambient(self, width: int) -> int:
        import geoopt

        self._require_vectors()
        if isinstance(self.base, geoopt.ProductManifold):
            coordinates = int(self.base.n_elements)
            if self.dimension(coordinates) == width:
                return coordinates
        elif isinstance(self.base, geoopt.Sphere | geoopt.Lorentz):
            return width + 1
        else:
            for coordinates in range(width, 2 * width + 2):
                if self.dimension(coordinates) == width:
                    return coordinates
        raise ValueError(f"{self.base.name} has no points of dimension {width}")

    def _require_vectors(self) -> None:
        if self.base.ndim != 1:
            raise TypeError(
                f"points of {self.base.name} have {self.base.ndim} axes; maps at the origin, random points and models "
                "need a space whose points are vectors"
            )

    def problems(self, x: Tensor) -> list[str]:
        problems = super().problems(x)
        if not problems:
            valid, reason = self.base.check_point_on_manifold(x, explain=True)
            if not valid:
                problems.append(f"expected a point of {self.base.name}: {reason}; try manifold.project(x)")
        return problems


def _signed(negative: Any, positive: Any, q: Tensor) -> Tensor:
    """``negative(q)`` for ``q >= 0`` (curvature below zero), ``positive(-q)`` for ``q < 0``."""
    flat = torch.zeros_like(q)
    result: Tensor = torch.where(q >= 0, negative(torch.where(q >= 0, q, flat)), positive(torch.where(q < 0, -q, flat)))
    return result


def _angle_over_sine(chord: Tensor) -> Tensor:
    """``a / sin a`` of the squared chord ``4 sin^2(a/2)``, smooth at 0."""
    q = 0.25 * chord
    small = q < 0.01
    # asin(s) / s of q = s^2.
    near = numerics.horner(torch.where(small, q, 0.0), (1.0, 1 / 6, 3 / 40, 5 / 112, 35 / 1152, 63 / 2816, 231 / 13312))
    s = torch.where(small, 0.5, q.clamp_max(1.0)).sqrt()
    return torch.where(small, near, torch.asin(s) / s) * (1.0 - q).clamp_min(torch.finfo(q.dtype).eps).rsqrt()


def _shrink_sphere(p: Tensor) -> Tensor:
    """``(r / sin r - 1) / r^2`` of ``p = r^2``, the continuation of ``shrink`` to negative arguments."""
    small = p < 0.1
    near = numerics.horner(torch.where(small, -p, 0.0), numerics.SHRINK_SERIES)
    r = torch.where(small, 1.0, p).sqrt()
    return torch.where(small, near, (r / torch.sin(r) - 1.0) / (r * r))


def _stretch_sphere(p: Tensor) -> Tensor:
    """``(1 - sin r / r) / r^2`` of ``p = r^2``, the continuation of ``stretch`` to negative arguments."""
    small = p < 0.1
    near = numerics.horner(torch.where(small, -p, 0.0), numerics.STRETCH_SERIES)
    r = torch.where(small, 1.0, p).sqrt()
    return torch.where(small, near, (1.0 - torch.sin(r) / r) / (r * r))
