"""A view of the disk from an embedding of any dimension, at one or several diffusion times."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.report.contents import DiskView
from hgde.report.projection import measure_quality, project_to_disk


def make_disk_view(
    z: Tensor, c: float, *, times: list[float] | None = None, method: str = "principal", seed: int = 0, **facts: Any
) -> DiskView:
    """Points ``[N, d]`` or, over diffusion times, ``[T, N, d]`` of the ball of curvature ``-c`` as a :class:`DiskView`.

    All times are projected together, so that a node's way through the disk is one way. ``facts`` are the other fields
    of the view (edges, ids, labels, ...). Quality is measured at the last time.
    """
    frames = (z[None] if z.dim() == 2 else z).detach().double().cpu()
    count, nodes, width = frames.shape
    seen = project_to_disk(frames.reshape(count * nodes, width), c, method, seed=seed)
    points = seen.points.reshape(count, nodes, 2)
    # Points on the dtype's limit count as inside; a picture needs no more digits than this.
    radius = points.norm(dim=-1, keepdim=True)
    points = points * ((1 - 1e-9) / radius.clamp_min(1 - 1e-9))
    words = "Two dimensions as trained"
    quality: dict[str, float] = {}
    if width > 2:
        words = f"{width} dimensions shown by {method}"
        quality = measure_quality(frames[-1] * c**0.5, points[-1], seed=seed).as_dict()
    return DiskView(
        positions=points.numpy(),
        times=list(range(count)) if times is None else times,
        method=f"{words}, curvature {-c:.3g}",
        quality=quality,
        **{name: _plain(value) for name, value in facts.items()},
    )


def _plain(value: Any) -> Any:
    return np.asarray(value.detach().cpu()) if isinstance(value, torch.Tensor) else value
