"""Safe primitives: functions with removable singularities, the limits of each dtype, the counter of projections.

Every function here takes the *squared* radius ``q = r^2``. All formulas of hyperbolic space can be written with such
even functions, so no norm is taken, no division by a norm occurs, and value and gradient are smooth at ``r = 0``.
Near zero a Taylor polynomial takes over: there the quotient itself is accurate, but its derivative cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident

import torch
from torch import Tensor


@dataclass(frozen=True)
class Limits:
    """How close to the boundary a point of one dtype may come.

    A point is kept at ``sqrt(c)|x| <= 1 - margin``. The rounding of ``c|x|^2`` alone changes ``1 - c|x|^2`` by about
    ``eps``, so at the limit the conformal factor has a relative error of about ``eps / margin``; a margin any smaller
    would keep points whose distances are mostly rounding.

    ``margin``: distance of ``sqrt(c)|x|`` from 1.  ``conformal_error``: relative error of the conformal factor there.
    """

    margin: float
    conformal_error: float

    @property
    def reach(self) -> float:
        """The largest distance from the origin, in radii of curvature."""
        return math.asinh(self.largest_sinh)

    @property
    def smallest_b(self) -> float:
        """``1 - c|x|^2`` at the limit."""
        return self.margin * (2.0 - self.margin)

    @property
    def largest_sinh(self) -> float:
        """``sinh`` of the reach: ``sqrt(c)|x_s|`` at the limit, ``x_s`` a point's spatial part on the hyperboloid."""
        return 2.0 * (1.0 - self.margin) / self.smallest_b


#: float32 loses 1 % of the conformal factor 12.2 from the origin, float64 a part in 10^4 28.3 from it.
LIMITS: dict[torch.dtype, Limits] = {
    torch.float32: Limits(margin=1e-5, conformal_error=1.2e-2),
    torch.float64: Limits(margin=1e-12, conformal_error=2.3e-4),
}


def limits(dtype: torch.dtype) -> Limits:
    """The limits of ``dtype``; half precision is refused, since it cannot represent points beyond a distance of 6."""
    known = LIMITS.get(dtype)
    if known is None:
        raise TypeError(
            f"points of hyperbolic space need float32 or float64, got {dtype}; "
            "convert them with x.float(), or leave autocast before entering the space"
        )
    return known


def is_eager() -> bool:
    """Whether torch computes at once, so that values may be looked at: nothing traces or transforms the program.

    >>> is_eager()
    True
    """
    return not (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._are_functorch_transforms_active()
    )


class ProjectionCounter:
    """How many points had left the space and were projected. Counts stay on their device until ``total`` is read."""

    def __init__(self) -> None:
        self._pending: list[Tensor | int] = []
        self._total = 0
        self.thread = get_ident()

    def add(self, count: Tensor | int) -> None:
        self._pending.append(count)

    @property
    def total(self) -> int:
        if self._pending:
            self._total += int(sum(int(count) for count in self._pending))
            self._pending.clear()
        return self._total


# A plain list rather than a context variable: torch.compile can trace it. Each counter knows the thread it counts for.
_counters: list[ProjectionCounter] = []


@contextmanager
def count_projections() -> Iterator[ProjectionCounter]:
    """Count the points projected inside the block: ``with count_projections() as counter: ...; counter.total``.

    Blocks nest, and each sees everything that happens inside it.

    >>> import torch
    >>> from hgde import PoincareBall
    >>> with count_projections() as counter:
    ...     _ = PoincareBall().project(torch.tensor([[2.0, 0.0], [0.1, 0.0]]))
    >>> counter.total
    1
    """
    counter = ProjectionCounter()
    _counters.append(counter)
    try:
        yield counter
    finally:
        _counters.remove(counter)


def counting_projections() -> bool:
    """Whether anyone is listening; lets callers skip the sum when nobody is.

    >>> from hgde.geometry import count_projections
    >>> counting_projections()
    False
    >>> with count_projections():
    ...     counting_projections()
    True
    """
    return len(_counters) > 0


def record_projections(count: Tensor | int) -> None:
    """Report ``count`` (a number, or a 0-d integer tensor) projected points to every counter that this thread has open.

    >>> import torch
    >>> from hgde.geometry import count_projections
    >>> with count_projections() as counter:
    ...     record_projections(torch.tensor([True, False, True]).sum())
    >>> counter.total
    2
    """
    own = None if torch.compiler.is_compiling() else get_ident()
    for counter in tuple(_counters):  # another thread may open or close one meanwhile
        if own is None or counter.thread == own:
            counter.add(count)


def horner(q: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The polynomial ``sum_k coefficients[k] q^k``."""
    value = torch.full_like(q, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * q + coefficient
    return value


def _even(q: Tensor, below: float, series: Sequence[float], closed: Callable[[Tensor], Tensor]) -> Tensor:
    """``closed(q)`` where ``q >= below``, the series elsewhere; neither branch sees the other's arguments."""
    small = q < below
    near = horner(torch.where(small, q, 0.0), series)
    far = closed(torch.where(small, 1.0, q))
    return torch.where(small, near, far)


_TANHC = (1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925, 21844 / 6081075, -929569 / 638512875)
_ARTANHC = (1.0, 1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13, 1 / 15)
_ASINHC = (1.0, -1 / 6, 3 / 40, -5 / 112, 35 / 1152, -63 / 2816, 231 / 13312, -143 / 10240)
SHRINK_SERIES = (
    1 / 6,
    -7 / 360,
    31 / 15120,
    -127 / 604800,
    73 / 3421440,
    -1414477 / 653837184000,
    8191 / 37362124800,
    -16931177 / 762187345920000,
)
STRETCH_SERIES = (1 / 6, 1 / 120, 1 / 5040, 1 / 362880, 1 / 39916800, 1 / 6227020800, 1 / 1307674368000)


def tanhc(q: Tensor) -> Tensor:
    """``tanh(r) / r`` of ``q = r^2``."""

    def closed(q: Tensor) -> Tensor:
        r = q.sqrt()
        return torch.tanh(r) / r

    return _even(q, 0.02, _TANHC, closed)


def artanhc(q: Tensor) -> Tensor:
    """``artanh(r) / r`` of ``q = r^2 < 1``; beyond the dtype's margin the value stays that of the margin."""
    bound = (1.0 - limits(q.dtype).margin) ** 2

    def closed(q: Tensor) -> Tensor:
        r = q.clamp_max(bound).sqrt()
        return torch.atanh(r) / r

    return _even(q, 0.02, _ARTANHC, closed)


def sinhc(q: Tensor) -> Tensor:
    """``sinh(r) / r`` of ``q = r^2``."""
    return 1.0 + q * stretch(q)


def asinhc(q: Tensor) -> Tensor:
    """``asinh(r) / r`` of ``q = r^2``."""

    def closed(q: Tensor) -> Tensor:
        r = q.sqrt()
        return torch.asinh(r) / r

    return _even(q, 0.02, _ASINHC, closed)


def sech2(q: Tensor) -> Tensor:
    """``1 - tanh(r)^2`` of ``q = r^2`` without cancellation: ``4 e / (1 + e)^2`` with ``e = exp(-2r)``."""
    small = q < 1e-4
    # 1 - q + 2q^2/3 - 17q^3/45: the square root in the other branch has no derivative at zero.
    near = horner(torch.where(small, q, 0.0), (1.0, -1.0, 2 / 3, -17 / 45, 62 / 315))
    e = torch.exp(-2.0 * torch.where(small, 1.0, q).sqrt())
    return torch.where(small, near, 4.0 * e / (1.0 + e) ** 2)


def shrink(q: Tensor) -> Tensor:
    """``(1 - r / sinh r) / r^2`` of ``q = r^2``; what the inverse differential of exp takes off across the geodesic."""

    def closed(q: Tensor) -> Tensor:
        r = q.sqrt()
        e = torch.exp(-r)
        return (1.0 - 2.0 * r * e / (1.0 - e * e)) / q

    return _even(q, 0.1, SHRINK_SERIES, closed)


def stretch(q: Tensor) -> Tensor:
    """``(sinh r / r - 1) / r^2`` of ``q = r^2``; what the differential of exp adds across the geodesic."""

    def closed(q: Tensor) -> Tensor:
        r = q.sqrt()
        return (torch.sinh(r) / r - 1.0) / q

    return _even(q, 0.1, STRETCH_SERIES, closed)


def squared_norm(x: Tensor) -> Tensor:
    """``|x|^2`` over the last axis, kept: ``[..., d] -> [..., 1]``."""
    return (x * x).sum(dim=-1, keepdim=True)


def dot(x: Tensor, y: Tensor) -> Tensor:
    """``<x, y>`` over the last axis, kept: ``[..., d] -> [..., 1]``."""
    return (x * y).sum(dim=-1, keepdim=True)


def safe_sqrt(q: Tensor) -> Tensor:
    """``sqrt(q)`` with gradient 0 where ``q = 0``."""
    zero = q <= 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, q).sqrt())


def safe_norm(x: Tensor) -> Tensor:
    """``|x|`` over the last axis, kept, with gradient 0 at the origin.

    Vectors shorter than 1e-19 (float32) square to zero and count as zero; no point needs them.
    """
    return safe_sqrt(squared_norm(x))
