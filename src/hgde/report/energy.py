"""Dirichlet energy along time, drawn."""

from __future__ import annotations

from pathlib import Path


def draw_energy(path: Path, times: list[float], curves: dict[str, list[float]], title: str = "") -> None:
    """Write a picture with one line per named curve, energy on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for name, values in curves.items():
        axes.plot(times, values, marker="o", markersize=3, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("t")
    axes.set_ylabel("hyperbolic Dirichlet energy")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140, bbox_inches="tight")
    plt.close(figure)
