"""An embedding drawn in the Poincaré disk, with its edges as geodesics."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.geometry import ball
from hgde.graph import Graph
from hgde.report.projection.principal import principal


def to_disk(z: Tensor, c: float) -> Tensor:
    """Points of the unit disk ``[N, 2]`` for points of any ball ``[N, d]``.

    Two dimensions are kept as they are. More are reduced in the tangent space at the origin to the two directions that
    hold most of the spread; distances from the origin shrink by what the other directions held.
    """
    return principal((z.detach().double().cpu() * math.sqrt(c)).contiguous())


def geodesics(points: Tensor, pairs: Tensor, pieces: int = 12) -> np.ndarray[Any, Any]:
    """The geodesic of each pair as a polyline ``[M, pieces + 1, 2]`` in the unit disk."""
    x, y = points[pairs[0]], points[pairs[1]]
    along = torch.linspace(0, 1, pieces + 1, dtype=points.dtype)[None, :, None]
    direction = ball.logmap(x, y, 1.0)[:, None, :]
    start = x[:, None, :].expand(-1, pieces + 1, -1)
    return ball.expmap(start, along * direction, 1.0).numpy()


def draw_disk(
    path: Path,
    z: Tensor,
    c: float,
    graph: Graph | None = None,
    labels: Tensor | None = None,
    class_names: list[str] | None = None,
    *,
    title: str = "",
    root: int | None = None,
    most_edges: int = 20_000,
) -> None:
    """Write a picture: the boundary, geodesic edges, nodes coloured by class; ``root`` is marked if given."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    points = to_disk(z, c)
    figure, axes = plt.subplots(figsize=(8, 8.4))
    axes.add_patch(Circle((0, 0), 1.0, facecolor="#fbfaf7", edgecolor="#444444", linewidth=1.2, zorder=0))
    # The picture reaches as far as the points do, so that a small embedding is not a dot in the middle.
    reach = 1.15 * float(points.norm(dim=1).quantile(0.999)) if len(points) else 1.0
    reach = reach if reach < 0.6 else 1.0
    if graph is not None and graph.undirected_edges.shape[1] <= most_edges:
        lines = geodesics(points, graph.undirected_edges.cpu())
        axes.add_collection(LineCollection(list(lines), colors="#8c8c8c", linewidths=0.35, alpha=0.5, zorder=1))
    size = 14 if len(points) <= 5000 else 4
    palette = plt.get_cmap("tab10" if labels is None or int(labels.max()) < 10 else "tab20")
    classes = [0] if labels is None else sorted(set(labels.tolist()))
    for place in classes:
        chosen = np.ones(len(points), bool) if labels is None else (labels == place).cpu().numpy()
        name = "unlabelled" if place < 0 else (class_names[place] if class_names else f"class {place}")
        colour = "#bbbbbb" if place < 0 else palette(place)
        where = points.numpy()[chosen]
        axes.scatter(where[:, 0], where[:, 1], s=size, color=colour, linewidths=0, label=name, zorder=2, alpha=0.85)
    if root is not None:
        x, y = points[root].tolist()
        axes.scatter(x, y, s=120, marker="*", color="black", zorder=3, label="root")
    axes.set_xlim(-reach * 1.02, reach * 1.02)
    axes.set_ylim(-reach * 1.02, reach * 1.02)
    axes.set_aspect("equal")
    axes.axis("off")
    if labels is not None:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, -0.06), ncols=min(7, len(classes) + 1), frameon=False)
    shown = "" if z.shape[1] <= 2 else f"  ({z.shape[1]} dimensions, two principal directions at the origin)"
    axes.set_title(f"{title}\ncurvature {-c:.3g}{shown}", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140, bbox_inches="tight")
    plt.close(figure)
