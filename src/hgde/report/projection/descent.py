"""Riemannian descent of points of the disk, shared by the methods that move every point by itself."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from hgde.geometry import ball


def spread_apart(points: Tensor, generator: torch.Generator, amount: float = 1e-3) -> Tensor:
    """The points with a little noise, so that those which coincide can part; none too near the boundary."""
    noisy = points + amount * torch.randn(points.shape, generator=generator, dtype=points.dtype)
    radius = noisy.norm(dim=1, keepdim=True)
    return noisy * (0.999 / radius.clamp_min(0.999))


def descend(loss: Callable[[Tensor], Tensor], start: Tensor, *, steps: int, rate: float) -> Tensor:
    """The best point of a Riemannian Adam descent: moments in the tangent space, steps by exp, transported momentum.

    One second moment per point, of the gradient's length in the metric, makes steps of about ``rate`` in hyperbolic
    length wherever a point is; the rate falls to zero along a cosine.
    """
    x = start.detach().clone()
    momentum = torch.zeros_like(x)
    second = torch.zeros_like(x[:, :1])
    best, least = x, math.inf
    for step in range(1, steps + 1):
        x.requires_grad_()
        value = loss(x)
        (gradient,) = torch.autograd.grad(value, x)
        x = x.detach()
        if (reached := float(value.detach())) < least:
            best, least = x, reached
        gradient = ball.egrad2rgrad(x, gradient, 1.0)
        momentum = 0.9 * momentum + 0.1 * gradient
        second = 0.99 * second + 0.01 * ball.inner(x, gradient, gradient, 1.0, keepdim=True)
        current = rate * 0.5 * (1.0 + math.cos(math.pi * step / (steps + 1)))
        length = (second / (1.0 - 0.99**step)).sqrt() + 1e-12
        move = -current / (1.0 - 0.9**step) * momentum / length
        moved = ball.expmap(x, move, 1.0)
        momentum = ball.transport(x, moved, momentum, 1.0)
        x = moved
    return best if float(loss(x)) > least else x


FEW = 12
"""Up to so many points minima are many and cheap: random beginnings are tried as well."""
_BEGINNINGS = 12


def best_of_many(loss: Callable[[Tensor], Tensor], points: Tensor, generator: torch.Generator) -> Tensor:
    """The best minimum reached from ``points`` and, for a few points, from random places about as far out."""
    minima = [polish(loss, points)]
    if len(points) <= FEW:
        reach = float(ball.logmap0(points, 1.0).norm(dim=1).mean())
        for _ in range(_BEGINNINGS):
            drawn = reach * torch.randn(points.shape, generator=generator, dtype=points.dtype)
            minima.append(polish(loss, ball.expmap0(drawn, 1.0), steps=200))
    return min(minima, key=lambda reached: float(loss(reached)))


def polish(loss: Callable[[Tensor], Tensor], points: Tensor, steps: int = 60) -> Tensor:
    """The nearest minimum by L-BFGS in tangent coordinates at the origin; for losses that give the same value twice."""
    v = ball.logmap0(points, 1.0).clone().requires_grad_()
    optimiser = torch.optim.LBFGS([v], max_iter=steps, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss(ball.expmap0(v, 1.0))
        value.backward()
        return value

    optimiser.step(closure)
    polished = ball.expmap0(v.detach(), 1.0)
    return polished if float(loss(polished)) < float(loss(points)) else points
