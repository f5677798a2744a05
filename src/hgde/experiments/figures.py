"""The paper's figures from stored runs: energy along time, accuracy by diffusivity, Cora in the disk.

What is missing is trained first; the pictures are then drawn from the records in ``results/figures`` alone. Weights
between all pairs of nodes cost their square: on graphs beyond :data:`MOST_ALL_PAIRS` nodes ``linear-global`` stands for
``global``, and ``local-global`` is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hgde.data import find_spec
from hgde.experiments.figure_work import DIFFUSIVITIES, INTEGRATORS
from hgde.experiments.jobs import Crew, Job, OnDone, run_jobs
from hgde.experiments.places import at_place, key_of
from hgde.experiments.reproduce import usable, why_not
from hgde.experiments.store import Store
from hgde.experiments.table import unit_of
from hgde.experiments.tables import load_table
from hgde.sections import overlay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED = "#1f5fbf", "#d62728"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")
SEEDS = 5
MOST_ALL_PAIRS = 10_000
SUFFIXES = ("png", "svg")
Say = Callable[[str], None]


def energy_jobs() -> list[Job]:
    """Cora and CiteSeer, three integrators, with and without residual."""
    jobs = []
    for data in ("cora", "citeseer"):
        for method in INTEGRATORS:
            for residual in (True, False):
                model: dict[str, Any] = {"name": "hgde", "width": 16, "time": 16.0, "solver": {"name": method}}
                model["residual"] = residual
                settings = {"preset": "none", "data": {"name": data}, "model": model, "run": {"threads": 1}}
                settings["training"] = {"epochs": 100, "patience": 100}
                key = f"{method}-{'with' if residual else 'without'}-residual"
                jobs.append(Job(f"figures/energy-{data}", key, "hgde.experiments.figure_work:energy", settings))
    return jobs


def diffusivity_jobs(say: Say) -> list[Job]:
    """Every diffusivity of the paper on every node-classification set, five runs each.

    Residual, dropout and weight decay as printed for the set; ``heuler``, T = 4, width 16 and at most 150 epochs on all
    sets, so that bars of different sets differ by the set alone and all pairs of nodes can be afforded.
    """
    jobs = []
    cells = [
        cell
        for name in ("nodes", "hetero")
        for cell in load_table(name).cells()
        if cell.system.name == "hgde-e" and cell.protocol == "clean"
    ]
    for cell in usable(cells, say):
        common = {"name": "hgde", "width": 16, "time": 4.0, "solver": {"name": "heuler"}}
        for diffusivity in _affordable(cell.data.name):
            model = {**common, "diffusivity": {"name": diffusivity}}
            changes = {"preset": "none", "model": model, "training": {"epochs": 150, "patience": 100}}
            settings = overlay(cell.settings, changes)
            for place in [(split, seed) for split in cell.data.splits[:SEEDS] for seed in range(SEEDS)][:SEEDS]:
                path = f"figures/diffusivity/{cell.data.key}--{diffusivity}"
                cost = cell.cost * (20 if "global" in diffusivity else 1)
                jobs.append(Job(path, key_of(place), "train", at_place(settings, place), cost=cost))
    return jobs


def _affordable(data: str) -> tuple[str, ...]:
    expected = find_spec(data).expected  # of real sets; generated ones are small
    if expected is None or expected.nodes <= MOST_ALL_PAIRS:
        return DIFFUSIVITIES
    return (*(name for name in DIFFUSIVITIES if "global" not in name), "linear-global")


def disk_jobs() -> list[Job]:
    """Cora in two dimensions, by local and by local-global weights.

    The curvature is held and weights decay little: else training flattens the disk, and all points lie at its centre.
    """
    jobs = []
    for diffusivity in ("attention", "local-global"):
        model: dict[str, Any] = {"name": "hgde", "width": 2, "time": 4.0, "diffusivity": {"name": diffusivity}}
        model["space"] = {"name": "ball", "curvature": 1.0, "learn_curvature": False}
        settings = {"preset": "none", "data": {"name": "cora"}, "model": model, "run": {"threads": 1}}
        settings["training"] = {"epochs": 300, "patience": 300, "lr": 0.02, "weight_decay": 1e-4}
        jobs.append(Job("figures/disk", diffusivity, "hgde.experiments.figure_work:disk", settings))
    return jobs


def draw_figures(
    results: Path,
    docs: Path,
    names: Sequence[str] = (),
    workers: int | Crew = 2,
    minutes: float | None = None,
    retry: bool = False,
    on_done: OnDone | None = None,
    say: Say | None = None,
) -> list[Path]:
    """Train what is missing of the named figures (all, if none is named), then write them as PNG and SVG."""
    say = say or (lambda _: None)
    jobs = [job for name in names or FIGURES for job in FIGURES[name].jobs(say)]
    lacking = {data: why_not(data, fetch=True) for data in {job.settings["data"]["name"] for job in jobs}}
    for data, reason in sorted(lacking.items()):
        if reason is not None:
            say(f"{data} is left out: {reason}")
    jobs = [job for job in jobs if lacking[job.settings["data"]["name"]] is None]
    run_jobs(jobs, Store(results), workers, on_done, minutes, retry)
    return draw_stored(results, docs, names)


def draw_stored(results: Path, docs: Path, names: Sequence[str] = ()) -> list[Path]:
    """The figures from what is on disk; one whose records are missing is left out."""
    store = Store(results)
    written: list[Path] = []
    for name in names or FIGURES:
        figure = FIGURES[name].draw(store)
        if figure is not None:
            written += save(figure, docs / f"figure-{name}")
    return written


def save(figure: Figure, stem: Path) -> list[Path]:
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(f".{suffix}") for suffix in SUFFIXES]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths


def _results(store: Store, cell: str) -> dict[str, dict[str, Any]]:
    return {key: record["result"] for key, record in store.records(cell) if "result" in record}


def _energy(store: Store) -> Figure | None:
    """Energy along ``t``: solid with the residual, dashed without."""
    sets = {name: _results(store, f"figures/energy-{name}") for name in ("cora", "citeseer")}
    if not any(sets.values()):
        return None
    figure, axes = _figure(9.0, 3.8, 2)
    for place, (name, curves) in zip(axes, sets.items(), strict=True):
        for colour, method in zip(COLOURS, INTEGRATORS, strict=False):
            for word, style in (("with", "-"), ("without", "--")):
                curve = curves.get(f"{method}-{word}-residual")
                if curve is not None:
                    values = np.maximum(curve["energy"], 1e-12)
                    place.plot(curve["times"], values, style, color=colour, label=f"{method}, {word} residual")
        place.set_yscale("log")
        place.set_title({"cora": "Cora", "citeseer": "CiteSeer"}[name])
        place.set_xlabel("t")
    axes[0].set_ylabel("hyperbolic Dirichlet energy")
    axes[-1].legend(frameon=False, fontsize=7)
    return figure


def _diffusivity(store: Store) -> Figure | None:
    """Mean accuracy by diffusivity, a group of bars per data set, with standard deviations."""
    scores: dict[str, dict[str, list[float]]] = {}
    for cell in store.cells("figures/diffusivity"):
        data, _, name = cell.rpartition("/")[2].partition("--")
        found = [unit_of(r["metric"]) * r["test"][r["metric"]] for r in _results(store, cell).values()]
        if found:
            scores.setdefault(data, {})[name] = found
    if not scores:
        return None
    names = [name for name in (*DIFFUSIVITIES, "linear-global") if any(name in row for row in scores.values())]
    figure, (axes,) = _figure(max(6.0, 1.1 * len(scores)), 3.8, 1)
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        at = [k + (number - (len(names) - 1) / 2) * width for k, row in enumerate(scores.values()) if name in row]
        means = [float(np.mean(row[name])) for row in scores.values() if name in row]
        spreads = [
            float(np.std(row[name], ddof=1)) if len(row[name]) > 1 else 0.0 for row in scores.values() if name in row
        ]
        axes.bar(at, means, width, yerr=spreads, color=COLOURS[number], label=name, error_kw={"linewidth": 0.8})
    lowest = min(float(np.mean(values)) for row in scores.values() for values in row.values())
    axes.set_ylim(max(0.0, lowest - 10), 100)
    axes.set_xticks(range(len(scores)), list(scores), rotation=20, ha="right")
    axes.set_ylabel("test score, %")
    axes.legend(frameon=False, fontsize=8, ncols=len(names))
    return figure


def _disk(store: Store) -> Figure | None:
    """Sampled nodes in the disk; blue lines are local weights, red ones global, bolder for larger."""
    records = _results(store, "figures/disk")
    if not records:
        return None
    figure, axes = _figure(5.2 * len(records), 5.6, len(records))
    for place, (name, record) in zip(axes, records.items(), strict=True):
        draw_weights(place, record)
        place.set_title(f"{name}: local blue, global red" if record["global"] else f"{name}: local weights")
    return figure


def draw_weights(axes: Axes, record: dict[str, Any]) -> None:
    """Points of the disk, coloured by class, and the weights between them as geodesics, their widths on one scale."""
    import torch
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    from hgde.report.disk import geodesics

    points = np.array(record["points"])
    axes.add_patch(Circle((0, 0), 1.0, facecolor="#fbfaf7", edgecolor="#444444", linewidth=1.0))
    largest = max(entry[2] for kind in ("local", "global") for entry in record[kind])
    for kind, colour in (("global", RED), ("local", BLUE)):
        if record[kind]:
            pairs = np.array([entry[:2] for entry in record[kind]], dtype=np.int64).T
            shares = np.array([entry[2] for entry in record[kind]]) / largest
            lines = geodesics(torch.from_numpy(points), torch.from_numpy(pairs))
            collection = LineCollection(list(lines), linewidths=0.2 + 1.8 * shares, colors=colour, alpha=0.35)
            axes.add_collection(collection)
    axes.scatter(points[:, 0], points[:, 1], c=record["labels"], cmap="tab10", s=10, zorder=3, linewidths=0)
    axes.set_xlim(-1.02, 1.02)
    axes.set_ylim(-1.02, 1.02)
    axes.set_aspect("equal")
    axes.axis("off")


def _figure(width: float, height: float, columns: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(width, height), layout="constrained")
    axes: Iterable[Axes] = figure.subplots(1, columns, squeeze=False)[0]
    made = list(axes)
    for place in made:
        for side in ("top", "right"):
            place.spines[side].set_visible(False)
        place.grid(alpha=0.3)
    return figure, made


@dataclass(frozen=True)
class _Kind:
    jobs: Callable[[Say], list[Job]]
    draw: Callable[[Store], Figure | None]


FIGURES: Mapping[str, _Kind] = {
    "energy": _Kind(lambda _: energy_jobs(), _energy),
    "cora-disk": _Kind(lambda _: disk_jobs(), _disk),
    "diffusivity": _Kind(diffusivity_jobs, _diffusivity),
}
"""The figures by name, what each is drawn from, and how."""
