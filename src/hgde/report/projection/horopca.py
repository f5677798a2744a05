"""HoroPCA: principal components of hyperbolic space by horospherical projections (Chami and others, ICML 2021).

An ideal point ``p`` (a unit vector) measures a point by Busemann's function ``B_p(x) = log(|p - x|^2 / (1 - |x|^2))``.
The projection to the plane through the origin and two ideal points keeps both Busemann coordinates, and with them
distances along horospheres' normals. In Lorentz coordinates ``X = (t, s)`` with orthonormal ``p, q``,

    a = t - <s, q>,   b = t - <s, p>,   h = sqrt(2ab - 1),   Π(X) = (a + b - h,  a - h,  b - h),

the one of two mirror images that lies on the origin's side of the geodesic between ``p`` and ``q``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from hgde.geometry import ball
from hgde.geometry.models import ball_to_lorentz

_MOST_POINTS = 400  # in the fit of the second direction, whose cost is their square


def frechet_mean(z: Tensor, steps: int = 500) -> Tensor:
    """The point of the unit ball with the least mean squared distance to ``z [N, d]``; ``[d]``.

    Gradient descent. The Hessian of half a squared distance ``r^2 / 2`` has the eigenvalues 1 and ``r coth r``, so a
    step divided by the mean of ``r coth r`` never overshoots, where the plain mean of logarithms would.
    """
    mean = torch.zeros_like(z[0])
    for _ in range(steps):
        logs = ball.logmap(mean.expand_as(z), z, 1.0)
        r = ball.norm(mean.expand_as(z), logs, 1.0)
        steepest = torch.where(r > 1e-6, r / torch.tanh(r.clamp_min(1e-6)), 1.0).mean()
        move = logs.mean(0) / steepest
        mean = ball.expmap(mean, move, 1.0)
        if float(ball.norm(mean, move, 1.0)) < 1e-12:
            break
    return mean


def busemann(z: Tensor, p: Tensor) -> Tensor:
    """``B_p(z) = log(|p - z|^2 / (1 - |z|^2))`` for an ideal point ``p [d]``; ``[N, d] -> [N]``."""
    return (p - z).square().sum(-1).log() - (1.0 - z.square().sum(-1)).log()


def horospherical_projection(z: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """Points ``[N, d]`` in the plane of the orthonormal ideal points ``p, q [d]``, as points of the disk ``[N, 2]``."""
    lorentz = ball_to_lorentz(z, 1.0)
    time, space = lorentz[..., 0], lorentz[..., 1:]
    a, b = time - space @ q, time - space @ p
    h = (2.0 * a * b - 1.0).clamp_min(1e-24).sqrt()
    return torch.stack([a - h, b - h], dim=-1) / (1.0 + a + b - h)[..., None]


def spread_of(points: Tensor) -> Tensor:
    """Mean squared distance over pairs, the variance that HoroPCA maximises. ``O(N^2)``"""
    return ball.dist(points[:, None], points[None], 1.0).square().mean()


def horopca_directions(z: Tensor, *, seed: int = 0, starts: int = 6) -> tuple[Tensor, Tensor]:
    """The two ideal points, one after the other: the first maximises the variance of ``B_p``, the second, orthogonal
    to it, the spread in the plane. ``z [N, d]`` is centred. Each is the best of several starts of L-BFGS."""
    generator = torch.Generator().manual_seed(seed)
    _, _, axes = torch.linalg.svd(ball.logmap0(z, 1.0), full_matrices=True)
    candidates = torch.cat([axes[:3], -axes[:3], torch.randn(starts, z.shape[1], generator=generator, dtype=z.dtype)])

    def first(w: Tensor) -> Tensor:
        return -busemann(z, w / w.norm()).var(correction=0)

    p = _best(first, candidates)
    p = p / p.norm()
    sample = z[torch.randperm(len(z), generator=generator)[:_MOST_POINTS]]

    def complement(w: Tensor) -> Tensor:
        across = w - (w @ p) * p
        return across / across.norm()

    candidates = candidates[(candidates - (candidates @ p)[:, None] * p).norm(dim=1) > 1e-3]
    q = _best(lambda w: -spread_of(horospherical_projection(sample, p, complement(w))), candidates)
    return p, complement(q)


def horopca(z: Tensor, *, seed: int = 0) -> Tensor:
    """Points ``[N, d]`` of the unit ball, moved so that their mean is the origin, in the disk of the two best ideal
    points, ``[N, 2]``. Cost: some hundred passes over the points, and 400 squared distances each.

    >>> import torch
    >>> horopca(torch.eye(4, dtype=torch.float64) / 2).shape
    torch.Size([4, 2])
    """
    if len(z) < 2:
        return torch.zeros(len(z), 2, dtype=z.dtype)
    centred = ball.mobius_add(-frechet_mean(z).expand_as(z), z, 1.0)
    p, q = horopca_directions(centred, seed=seed)
    return ball.project(horospherical_projection(centred, p, q), 1.0)


def _best(objective: Callable[[Tensor], Tensor], starts: Tensor) -> Tensor:
    """The best start after a few steps, then polished."""
    results = [_descend(objective, start, 8) for start in starts]
    results.sort(key=lambda result: result[0])
    polished = [_descend(objective, w, 100) for _, w in results[:2]]
    return min(polished, key=lambda result: result[0])[1]


def _descend(objective: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> tuple[float, Tensor]:
    w = (start / start.norm()).clone().requires_grad_()
    optimiser = torch.optim.LBFGS([w], max_iter=steps, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = objective(w)
        loss.backward()
        return loss

    optimiser.step(closure)
    w = w.detach()
    return float(objective(w)), w / w.norm()
