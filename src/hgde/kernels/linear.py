"""Sums over all pairs at a cost linear in the nodes: exact over landmarks, and a cheap form for what they leave out.

With ``C(A)`` the cheap form of the sum over nodes ``A`` (a line for the sigmoid, one centroid for the points) and
``E(A)`` the exact one, the sum over all is taken as

    C(all) + E(S) - C(S),        S landmarks drawn from the nodes.

It is exact where ``E - C`` does not depend on which nodes are summed over, and its error is that of estimating the mean
of ``E - C`` from a sample: it falls as ``1 / sqrt(landmarks)`` whatever the number of nodes. ``S`` is drawn in two
halves, and by how much these differ the error is known at run time (:func:`watch_linear_errors`). The landmarks depend
on the number of nodes alone, so the form is a function with a gradient of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hgde.geometry import ball
from hgde.kernels import reference

log = logging.getLogger("hgde.kernels")

LANDMARKS = 512
#: An estimated error above this is worth a warning.
LARGE_ERROR = 0.05
_watchers: list[list[float]] = []
_warned = False

Sum = Callable[[Tensor, Tensor], Tensor]


@contextmanager
def watch_linear_errors() -> Iterator[list[float]]:
    """Collect the estimated error of every linear-cost sum taken inside the block, relative to its length.

    >>> import torch
    >>> from hgde.kernels import tangent_sum_global_linear
    >>> z, q = 0.1 * torch.eye(40, 4), torch.ones(40, 1, 4)
    >>> with watch_linear_errors() as errors:
    ...     _ = tangent_sum_global_linear(z, q, q, 1.0, landmarks=20)
    >>> 0 < errors[0] < 1
    True
    """
    errors: list[float] = []
    _watchers.append(errors)
    try:
        yield errors
    finally:
        _watchers.remove(errors)


@lru_cache(maxsize=32)
def landmark_halves(nodes: int, count: int) -> tuple[Tensor, Tensor]:
    """Two disjoint halves of ``count`` nodes, the same for every call with these numbers."""
    drawn = torch.from_numpy(np.random.RandomState(0).permutation(nodes)[:count].astype(np.int64))
    return drawn[: count // 2], drawn[count // 2 :]


def with_landmarks(exact: Sum, cheap: Sum, z: Tensor, key: Tensor, landmarks: int, size: Tensor) -> Tensor:
    """``C(all) + E(S) - C(S)`` for functions of the points and keys that are summed over.

    ``size [N, 1]`` is the length of a unit coordinate in each point's tangent space.
    """
    if landmarks < 2:
        raise ValueError(f"the linear-cost sum needs at least 2 landmarks, got {landmarks}; try {LANDMARKS}")
    left_out = []
    for half in landmark_halves(len(z), landmarks):
        some = half.to(z.device)
        y, k = z.index_select(0, some), key.index_select(0, some)
        left_out.append(exact(y, k) - cheap(y, k))
    v = cheap(z, key) + 0.5 * (left_out[0] + left_out[1])
    if not torch.compiler.is_compiling():
        _report(left_out, v, size, landmarks)
    return v


@torch.no_grad()
def _report(left_out: list[Tensor], v: Tensor, size: Tensor, landmarks: int) -> None:
    global _warned
    if _warned and not _watchers:
        return
    unseen = max(1 - landmarks / len(v), 0.0) ** 0.5
    length = (size * v).norm().clamp_min(torch.finfo(v.dtype).tiny)
    error = 0.5 * unseen * float((size * (left_out[0] - left_out[1])).norm() / length)
    for watcher in _watchers:
        watcher.append(error)
    if error > LARGE_ERROR and not _warned:
        _warned = True
        log.warning(
            "linear-global: the distance from the exact sum is estimated at %.0f %% of its length with %d landmarks; "
            "raise their number, or use global",
            100 * error,
            landmarks,
        )


def recomputed(function: Callable[..., Tensor], *args: Any) -> Tensor:
    """``function(*args)``, worked out again for its gradient: what is cheap is not worth a dozen states of memory."""
    result: Tensor = checkpoint(function, *args, use_reentrant=False, preserve_rng_state=False)
    return result


def line_slope(q: Tensor, k: Tensor) -> Tensor:
    """The slope ``b <= 1/4`` of ``1/2 + b s`` that leaves no weight negative, ``b max|q| max|k| <= 1/2``. ``[H, 1]``"""
    tiny = torch.finfo(q.dtype).tiny
    longest = [x.square().sum(-1).amax(0).clamp_min(tiny**0.5) for x in (q, k)]
    return (0.5 * (longest[0] * longest[1]).clamp_min(tiny).rsqrt()).clamp_max(0.25).unsqueeze(-1)


def line_mean(values: Tensor, q: Tensor, k: Tensor, slope: Tensor) -> Tensor:
    """``sum_j g_ij values_j``, ``g_ij`` proportional to ``1/2 + b q_i . k_j``, heads averaged. Cost ``N H e d``.

    Shapes: ``values [M, d]``, ``q [N, H, e]``, ``k [M, H, e]``; result ``[N, d]``.
    """
    scaled = slope * q
    moved = 0.5 * values.sum(0) + torch.einsum("ihe,hef->ihf", scaled, torch.einsum("jhe,jf->hef", k, values))
    total = 0.5 * len(values) + torch.einsum("ihe,he->ih", scaled, k.sum(0))
    return (moved / total[..., None]).mean(1)


def centroid_sum(z: Tensor, q: Tensor, y: Tensor, k: Tensor, c: Tensor, slope: Tensor) -> Tensor:
    """``log_{z_i}`` of the Lorentz centroid of points ``y [M, d]`` under the weights of :func:`line_mean`, ``[N, d]``.

    Exact where the points coincide or the weights are equal and the points close together. Cost ``N H e d``.
    """
    b = reference.conformal(y, c)
    centre = line_mean(torch.cat([2 / b - 1, 2 * y / b], -1), q, k, slope)
    squared = centre[:, :1].square() - c * centre[:, 1:].square().sum(-1, keepdim=True)
    target = centre[:, 1:] / (centre[:, :1] + squared.clamp_min(torch.finfo(z.dtype).eps).sqrt())
    return ball.logmap(z, ball.project(target, c), c)
