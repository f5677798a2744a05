"""The order of a method, measured: a problem with a known answer on any manifold, solved with halved steps.

The problem is an equation of flat space with a closed solution, drawn on the manifold by the exponential map at a
centre ``p`` away from the path: ``x = exp_p(sum_k w_k E_k)`` with an orthonormal frame ``E`` at ``p``. Its field is
``X = d exp_p(u)[u']``. In ``w`` the solution spirals around the centre, so it follows no geodesic, and the field
depends on time. No reference solver is needed, and none can hide an error that it shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgde.geometry import Euclidean, Lorentz, Manifold, PoincareBall
from hgde.solvers.method import Method
from hgde.solvers.odeint import odeint
from hgde.solvers.registry import resolve

#: Errors below this are rounding (float64, distances of order one) and say nothing about the order.
ROUNDING = 5e-13

#: How fast the test problem's coefficients vary in time, and how much.
BEAT, PULSE = 1.0, 0.1


def step_counts(method: Method) -> tuple[int, ...]:
    """Enough steps to be asymptotic, few enough for the error to stay above rounding."""
    return (64, 128) if method.order > 4 else (32, 64)


def tangent_frame(manifold: Manifold, p: Tensor, dim: int, generator: torch.Generator) -> Tensor:
    """An orthonormal basis ``[dim, n]`` of the tangent space at ``p``, from logarithms of random points."""
    frame: list[Tensor] = []
    while len(frame) < dim:
        v = manifold.logmap(p, manifold.random(*p.shape, generator=generator, dtype=p.dtype))
        # Twice: one pass of Gram-Schmidt loses orthogonality when v is nearly in the span.
        for _ in range(2):
            for e in frame:
                v = v - manifold.inner(p, v, e) * e
        length = manifold.norm(p, v)
        if float(length) > 1e-3:
            frame.append(v / length)
    return torch.stack(frame)


class Spiral:
    """``|w|' = rate a |w| (1 - |w|^2)`` while ``w`` turns at ``(spin_k + rate shear |w|^2) a`` in each plane of
    coordinates.

    ``a = 1 + PULSE cos(BEAT t)``. ``manifold`` is any with :meth:`dexp`, of dimension ``dim`` and ``width``
    coordinates; ``|w| = 1`` is ``size`` away from the centre, and the centre is ``away`` from the origin. ``start
    [points, width]`` are the initial states, ``exact(t)`` the answer.
    """

    def __init__(
        self,
        manifold: Manifold,
        width: int,
        dim: int | None = None,
        *,
        size: float = 1.0,
        away: float = 0.6,
        rate: float = 0.3,
        spin: float = 2.0,
        shear: float = 0.5,
        points: int = 48,
        seed: int = 0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.manifold = manifold
        self.dim = width if dim is None else dim
        origin = manifold.origin(width, dtype=torch.float64)
        frame0 = tangent_frame(manifold, origin, self.dim, generator)
        direction = torch.randn(self.dim, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            self.centre = manifold.expmap(origin, (away / direction.norm()) * direction @ frame0)
            self.frame = tangent_frame(manifold, self.centre, self.dim, generator)
        self.size, self.rate, self.shear = size, rate, shear
        w = torch.randn(points, self.dim, generator=generator, dtype=torch.float64)
        radius = 0.4 + 0.6 * torch.rand(points, 1, generator=generator, dtype=torch.float64)
        self.w0 = w * (radius / w.norm(dim=-1, keepdim=True))
        self.spin = spin + 0.25 * spin * torch.rand(self.dim // 2, generator=generator, dtype=torch.float64)

    def _point(self, w: Tensor) -> Tensor:
        return self.manifold.expmap(self.centre.expand(w.shape[0], -1), self.size * w @ self.frame)

    @property
    def start(self) -> Tensor:
        return self._point(self.w0)

    def exact(self, t: float) -> Tensor:
        """The states at time ``t``, in closed form."""
        r0 = (self.w0 * self.w0).sum(-1, keepdim=True)
        wave = math.sin(BEAT * t) / BEAT
        clock = self.rate * (t + PULSE * wave)
        r = 1.0 / (1.0 + (1.0 / r0 - 1.0) * math.exp(-2.0 * clock))
        angle = self.spin * (t + PULSE * wave) + 0.5 * self.shear * torch.log1p(r0 * math.expm1(2.0 * clock))
        pairs = 2 * len(self.spin)
        even, odd = self.w0[:, 0:pairs:2], self.w0[:, 1:pairs:2]
        w = self.w0.clone()
        w[:, 0:pairs:2] = torch.cos(angle) * even - torch.sin(angle) * odd
        w[:, 1:pairs:2] = torch.sin(angle) * even + torch.cos(angle) * odd
        return self._point(w * (r / r0).sqrt())

    def field(self, t: Tensor, x: Tensor) -> Tensor:
        """The vector field, ``[points, n]``."""
        manifold = self.manifold
        p = self.centre.expand_as(x)
        u = manifold.logmap(p, x)
        shape = (x.shape[0], self.dim, x.shape[-1])
        w = manifold.inner(p[:, None].expand(shape), u[:, None].expand(shape), self.frame.expand(shape)) / self.size
        squared = (w * w).sum(-1, keepdim=True)
        turned = torch.zeros_like(w)
        pairs = 2 * len(self.spin)
        turned[:, 0:pairs:2] = -w[:, 1:pairs:2]
        turned[:, 1:pairs:2] = w[:, 0:pairs:2]
        speed = torch.zeros_like(self.w0[0])
        speed[:pairs] = self.spin.repeat_interleave(2)
        derivative = (speed + (self.rate * self.shear) * squared) * turned + (self.rate * (1.0 - squared)) * w
        derivative = (1.0 + PULSE * torch.cos(BEAT * t)) * derivative
        return manifold.dexp(p, u, self.size * derivative @ self.frame, x)


@dataclass(frozen=True)
class MeasuredOrder:
    """Root mean square errors at halved steps, and the slope between the finest two above rounding."""

    method: str
    space: str
    declared: int
    counts: tuple[int, ...]
    errors: tuple[float, ...]
    order: float

    @property
    def agrees(self) -> bool:
        """Within 0.2 of what is declared; ``False`` if nothing could be measured."""
        return abs(self.order - self.declared) <= 0.2


def measure_order(
    method: str | Method, problem: Spiral, space: str = "", counts: Sequence[int] = (), until: float = 1.0
) -> MeasuredOrder:
    """Solve with every number of steps in ``counts`` and fit the order."""
    chosen = resolve(method)
    # A corrector stopped early would add an error of its own.
    rtol, atol = (1e-14, 1e-15) if chosen.corrects_to_call else (None, None)
    exact = problem.exact(until)
    used: list[int] = []
    errors: list[float] = []
    with torch.no_grad():
        for count in counts or step_counts(chosen):
            solution = odeint(
                problem.field,
                problem.start,
                (0.0, until),
                manifold=problem.manifold,
                method=chosen,
                step=until / count,
                rtol=rtol,
                atol=atol,
            )
            error = float(problem.manifold.dist(solution.final, exact).square().mean().sqrt())
            if error < ROUNDING:
                break
            used.append(count)
            errors.append(error)
    order = float("nan")
    if len(used) > 1:
        order = math.log(errors[-2] / errors[-1]) / math.log(used[-1] / used[-2])
    return MeasuredOrder(chosen.name, space, chosen.order_on(problem.manifold), tuple(used), tuple(errors), order)


def standard_problems() -> dict[str, Spiral]:
    """The plane, balls of three curvatures in two and sixteen dimensions, and a hyperboloid."""
    problems = {"plane": Spiral(Euclidean(), 2)}
    for c in (0.3, 1.0, 4.0):
        # A size in units of the curvature radius: beyond it the steps at hand no longer show the asymptotic order.
        for width in (2, 16):
            problems[f"ball c={c:g} d={width}"] = Spiral(PoincareBall(c), width, size=min(1.0, c**-0.5))
    problems["lorentz c=1 d=3"] = Spiral(Lorentz(1.0), 4, 3)
    return problems
