"""What curvature is worth: HGDE against its flat twin, graph by graph, as a table and a figure."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hgde.experiments.stats import Paired, paired_test
from hgde.experiments.table import Row
from hgde.experiments.tables import Cell
from hgde.files import write_atomically

SURE = 0.05


@dataclass(frozen=True)
class Gain:
    """The curved model minus the flat one on the same splits and seeds."""

    title: str
    task: str
    curved: float
    flat: float
    test: Paired
    distortion: tuple[float, float]

    @property
    def words(self) -> str:
        if math.isnan(self.test.p) or self.test.p >= SURE:
            return "no difference shown"
        return "curvature pays" if self.test.difference > 0 else "curvature costs"


def gains(cells: Sequence[tuple[Cell, Row]]) -> list[Gain]:
    """One for every column on which both were run."""
    rows = {(cell.data.key, cell.system.name): (cell, row) for cell, row in cells if row.scores}
    made = []
    for (key, name), (cell, row) in rows.items():
        twin = rows.get((key, "hgde-flat"))
        if name == "hgde" and twin is not None:
            test = paired_test(row.scores, twin[1].scores, row.test_per_train)
            means, distortions = (row.spread.mean, twin[1].spread.mean), (row.distortion, twin[1].distortion)
            made.append(Gain(cell.data.title, cell.data.task, *means, test, distortions))
    return made


def summary_lines(cells: Sequence[tuple[Cell, Row]]) -> list[str]:
    made = gains(cells)
    if not made:
        return []
    counts = {words: sum(gain.words == words for gain in made) for words in dict.fromkeys(g.words for g in made)}
    lines = [
        "On " + ", on ".join(f"{count} of {len(made)} graphs: {words}" for words, count in counts.items()) + ".",
        "",
        "Distortion is the mean of `|s d / hops - 1|` over pairs of nodes at the best scale `s`; 0 is an isometry.",
        "",
        "| graph | task | HGDE | flat twin | difference | p | | distortion, HGDE | distortion, flat |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for gain in made:
        p = "" if math.isnan(gain.test.p) else f"{gain.test.p:.2g}"
        shown = f"{gain.curved:.2f} | {gain.flat:.2f} | {gain.test.difference:+.2f} ± {gain.test.error:.2f} | {p}"
        distortions = " | ".join("" if math.isnan(value) else f"{value:.3f}" for value in gain.distortion)
        lines.append(f"| {gain.title} | {gain.task} | {shown} | {gain.words} | {distortions} |")
    return [*lines, "", "![difference to the flat twin](curvature.png)", ""]


def draw_gains(made: Sequence[Gain], path: Path) -> None:
    """Differences with two standard errors, one line per graph; right of zero, curvature pays."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 1.0 + 0.28 * max(3, len(made))), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    for place, gain in enumerate(made):
        colour = "#0072b2" if gain.task == "nodes" else "#d55e00"
        error = 0.0 if math.isnan(gain.test.error) else 2 * gain.test.error
        axes.errorbar(gain.test.difference, place, xerr=error, fmt="o", color=colour, capsize=3)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(made)), [gain.title for gain in made], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("HGDE minus its flat twin, points (two standard errors); blue: nodes, red: links")
    axes.grid(axis="x", alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.removeprefix("."))
    write_atomically(path, buffer.getvalue())
