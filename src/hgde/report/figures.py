"""The figures of reports, as matplotlib figures that the caller draws where it likes.

Axes, ticks and words are drawn in :data:`INK`, a colour of no picture, which pages replace by that of their text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from hgde.report.contents import ComparisonReport, DiskView, Report, RunReport, TuningReport
from hgde.report.measures import class_name

INK = "#010203"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#94673c", "#7b61cc", "#78a028", "#c83c5a")

# Any, since matplotlib lists every name in the type, and the list changes between its versions.
STYLE: Any = {
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "font.size": 10.0,
    "text.parse_math": False,  # a class may be named "$5"
    "svg.fonttype": "none",
    "svg.hashsalt": "hgde",
}

_LONGEST_NAME = 22
_MOST_VECTOR_NODES = 3000


def make_figures(report: Report) -> dict[str, Figure]:
    """Every figure the report's contents allow, by name."""
    builders: Mapping[str, Callable[[Any], Figure | None]]
    if isinstance(report, RunReport):
        builders = RUN_FIGURES
    elif isinstance(report, ComparisonReport):
        builders = {"systems": draw_systems}
    else:
        builders = {"trials": draw_trials, "importances": draw_importances}
    with rc_context(STYLE):
        made = {name: build(report) for name, build in builders.items()}
        return {name: _laid_out(figure) for name, figure in made.items() if figure is not None}


def _laid_out(figure: Figure) -> Figure:
    """The figure with its layout worked out: else every file it is saved to would do that again, and draw twice."""
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
    figure.set_layout_engine("none")
    return figure


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def draw_losses(report: RunReport) -> Figure | None:
    """Training and validation loss per epoch."""
    history = report.history
    if history is None or (history.loss is None and history.validation_loss is None):
        return None
    figure, axes = _figure(5.6, 3.3)
    for name, values, colour in (("training", history.loss, 0), ("validation", history.validation_loss, 1)):
        if values is not None:
            axes.plot(history.epochs, values, color=COLOURS[colour], label=name, linewidth=1.6)
    _mark_best(axes, history.best_epoch)
    axes.set(xlabel="epoch", ylabel="loss")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    return figure


def draw_score(report: RunReport) -> Figure | None:
    """Validation score per epoch."""
    history = report.history
    if history is None or history.score is None:
        return None
    figure, axes = _figure(5.6, 3.3)
    axes.plot(history.epochs, history.score, color=COLOURS[2], linewidth=1.6)
    _mark_best(axes, history.best_epoch)
    axes.set(xlabel="epoch", ylabel=history.score_name)
    return figure


def draw_curvature(report: RunReport) -> Figure | None:
    """Curvature of each space per epoch, and the points projected back into the ball, if there were any."""
    history = report.history
    projected = None if history is None else history.projected_points
    if projected is not None and not np.any(np.asarray(projected) > 0):
        projected = None
    if history is None or not (history.curvature or projected is not None):
        return None
    count = bool(history.curvature) + (projected is not None)
    figure = Figure(figsize=(5.6, 1.9 * count + 0.5), layout="constrained")
    panels = list(np.atleast_1d(figure.subplots(count, 1, sharex=True)))
    if history.curvature:
        axes = panels.pop(0)
        for k, (name, values) in enumerate(history.curvature.items()):
            axes.plot(history.epochs, values, color=COLOURS[k % 10], label=_short(name), linewidth=1.6)
        axes.set_ylabel("c, curvature is -c")
        if len(history.curvature) > 1:
            axes.legend()
    if projected is not None:
        axes = panels.pop(0)
        axes.fill_between(history.epochs, projected, color=COLOURS[3], alpha=0.5, linewidth=0)
        axes.set(ylabel="projected points", ylim=(0, 1.1 * max(projected)))
    figure.axes[-1].set_xlabel("epoch")
    return figure


def draw_confusion(report: RunReport) -> Figure | None:
    """Shares of each true class (rows) by prediction (columns)."""
    if report.confusion is None:
        return None
    counts = np.asarray(report.confusion)
    size = len(counts)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = min(8.0, max(3.4, 0.55 * size + 1.8))
    figure, axes = _figure(side + 0.6, side)
    axes.grid(False)
    for (i, j), share in np.ndenumerate(shares):
        if share > 0:
            axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=COLOURS[0], alpha=0.08 + 0.8 * share))
        if size <= 15 and counts[i, j]:
            axes.text(j, i, str(counts[i, j]), ha="center", va="center", fontsize=9)
    names = [_short(class_name(k, report.class_names)) for k in range(size)]
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), xlabel="predicted", ylabel="true", aspect="equal")
    if size <= 40:
        axes.set_xticks(range(size), names, rotation=90 if size > 6 or max(map(len, names)) > 8 else 0)
        axes.set_yticks(range(size), names)
    return figure


def draw_calibration(report: RunReport) -> Figure | None:
    """Accuracy against confidence in bins, and how many nodes each bin holds."""
    bins = report.calibration
    if bins is None or not len(bins.counts):
        return None
    figure, axes = _figure(4.2, 3.8)
    axes.plot([0, 1], [0, 1], color=INK, alpha=0.4, linestyle="--", linewidth=1)
    sizes = 20 + 220 * np.sqrt(np.asarray(bins.counts) / max(bins.counts))
    axes.plot(bins.confidence, bins.accuracy, color=COLOURS[0], linewidth=1.2)
    axes.scatter(bins.confidence, bins.accuracy, s=sizes, color=COLOURS[0], alpha=0.7, linewidths=0)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="confidence", ylabel="accuracy", aspect="equal")
    axes.set_title(f"expected calibration error {bins.error:.3f}", fontsize=10)
    return figure


def draw_values(report: RunReport) -> Figure | None:
    """Predicted against true values, a panel for each of the first four targets."""
    if report.values is None or not report.values.series:
        return None
    shown = list(report.values.series.items())[:4]
    figure = Figure(figsize=(3.8 * len(shown) + 0.4, 3.8), layout="constrained")
    for k, (axes, (name, (truth, predicted))) in enumerate(
        zip(np.atleast_1d(figure.subplots(1, len(shown))), shown, strict=True)
    ):
        ends = np.array([np.min([truth, predicted]), np.max([truth, predicted])]) if len(truth) else np.array([0, 1])
        axes.plot(ends, ends, color=INK, alpha=0.4, linestyle="--", linewidth=1)
        axes.scatter(truth, predicted, s=12, color=COLOURS[k % 10], alpha=0.6, linewidths=0)
        axes.set(xlabel=f"true {_short(name)}", ylabel="predicted")
    return figure


def draw_energy_curve(report: RunReport) -> Figure | None:
    """Dirichlet energy along the diffusion, on a logarithmic axis."""
    energy = report.energy
    if energy is None or not energy.curves:
        return None
    figure, axes = _figure(5.6, 3.3)
    for k, (name, values) in enumerate(energy.curves.items()):
        axes.plot(energy.times, values, color=COLOURS[k % 10], marker="o", markersize=3, label=_short(name))
    if all(value > 0 for values in energy.curves.values() for value in values):
        axes.set_yscale("log")
        # The usual formatter writes powers in the mathematical text that is switched off.
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda x, _: f"{x:.2g}"))
        axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axes.set(xlabel="diffusion time", ylabel="Dirichlet energy")
    if len(energy.curves) > 1:
        axes.legend()
    return figure


def draw_embedding(report: RunReport) -> Figure | None:
    """The disk at the last diffusion time, edges as geodesics; for print, where the explorer cannot be."""
    return None if report.disk is None else draw_view(report.disk)


def draw_view(view: DiskView, most_edges: int = 20_000) -> Figure:
    """A view of the disk, nodes coloured by class; drawn as pixels where there are very many."""
    points = np.asarray(view.positions)[-1]
    many = len(points) > _MOST_VECTOR_NODES
    figure, axes = _figure(6.4, 6.4)
    axes.add_patch(Circle((0, 0), 1.0, facecolor="none", edgecolor=INK, linewidth=1))
    if view.edges is not None:
        pairs = np.asarray(view.edges)[:, :most_edges]
        lines = chords(points[pairs[0]], points[pairs[1]], pieces=6 if many else 10)
        strength = float(np.clip(60 / np.sqrt(max(pairs.shape[1], 1)), 0.1, 0.6))
        axes.add_collection(LineCollection(list(lines), colors=INK, linewidths=0.4, alpha=strength, rasterized=many))
    labels = np.zeros(len(points), int) if view.labels is None else np.asarray(view.labels)
    size = 16 if len(points) <= 500 else 8 if len(points) <= 5000 else 2
    for k in np.unique(labels):
        chosen = labels == k
        colour = "#8c8c8c" if k < 0 else COLOURS[k % 10]
        name = None if view.labels is None else _short(class_name(int(k), view.class_names))
        x, y = points[chosen].T
        axes.scatter(x, y, s=size, color=colour, linewidths=0, label=name, rasterized=many, zorder=2)
    axes.set(xlim=(-1.01, 1.01), ylim=(-1.01, 1.01), aspect="equal")
    axes.axis("off")
    if view.labels is not None and len(np.unique(labels)) <= 20:
        figure.legend(loc="outside lower center", ncols=5, markerscale=1.6, fontsize=8)
    return figure


def chords(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], pieces: int = 12) -> np.ndarray[Any, Any]:
    """Geodesics of the unit disk between ``a`` and ``b`` ``[M, 2]`` as polylines ``[M, pieces + 1, 2]``.

    A geodesic is a chord in Klein's model, which is steep at the boundary; hence the cosine spacing.
    """
    s = 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, pieces + 1))[None, :, None]
    klein_a, klein_b = (2 * x / (1 + (x * x).sum(1, keepdims=True)) for x in (a, b))
    klein = (1 - s) * klein_a[:, None] + s * klein_b[:, None]
    return klein / (1 + np.sqrt(np.maximum(0, 1 - (klein * klein).sum(-1, keepdims=True))))


def draw_systems(report: ComparisonReport) -> Figure | None:
    """Mean and spread of each system, single runs behind."""
    systems = list(report.systems)
    if not systems:
        return None
    figure, axes = _figure(6.4, 0.42 * len(systems) + 1.1)
    for k, system in enumerate(systems):
        axes.scatter(system.scores, [k] * len(system.scores), s=18, color=COLOURS[k % 10], alpha=0.35, linewidths=0)
        axes.errorbar(system.mean, k, xerr=system.std, fmt="o", color=COLOURS[k % 10], capsize=3, markersize=6)
    axes.set_yticks(range(len(systems)), [_short(system.name) for system in systems])
    axes.set(ylim=(len(systems) - 0.5, -0.5), xlabel=report.score_name)
    return figure


def draw_trials(report: TuningReport) -> Figure | None:
    """Score of each trial in order, and the best so far."""
    complete = [(trial.number, trial.score) for trial in report.trials if trial.score is not None]
    if not complete:
        return None
    numbers, scores = zip(*complete, strict=True)
    figure, axes = _figure(6.4, 3.3)
    axes.scatter(numbers, scores, s=22, color=COLOURS[0], alpha=0.7, linewidths=0, label="trial")
    axes.step(
        numbers, np.maximum.accumulate(scores), where="post", color=COLOURS[1], linewidth=1.6, label="best so far"
    )
    axes.set(xlabel="trial", ylabel=report.score_name)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    return figure


def draw_importances(report: TuningReport) -> Figure | None:
    """How much of the spread of scores each setting explains."""
    if not report.importances:
        return None
    ordered = sorted(report.importances.items(), key=lambda item: -item[1])[:15]
    figure, axes = _figure(6.4, 0.32 * len(ordered) + 1.0)
    axes.barh(range(len(ordered)), [value for _, value in ordered], color=COLOURS[2], height=0.65)
    axes.set_yticks(range(len(ordered)), [_short(name) for name, _ in ordered])
    axes.set(ylim=(len(ordered) - 0.5, -0.5), xlabel="importance")
    return figure


RUN_FIGURES: Mapping[str, Callable[[RunReport], Figure | None]] = {
    "losses": draw_losses,
    "score": draw_score,
    "curvature": draw_curvature,
    "confusion": draw_confusion,
    "calibration": draw_calibration,
    "values": draw_values,
    "energy": draw_energy_curve,
    "embedding": draw_embedding,
}


def _mark_best(axes: Axes, epoch: int | None) -> None:
    if epoch is not None:
        axes.axvline(epoch, color=INK, alpha=0.4, linestyle=":", linewidth=1.2)
        axes.annotate("best ", (epoch, 0.02), xycoords=("data", "axes fraction"), ha="right", va="bottom", fontsize=8)


def _short(name: str) -> str:
    name = "".join(letter if letter.isprintable() else "\ufffd" for letter in str(name))
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
