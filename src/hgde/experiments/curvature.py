"""What curvature is worth: HGDE against its flat twin, graph by graph, as a table and a figure."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hgde.experiments.stats import Paired, paired_test
from hgde.experiments.table import Row
from hgde.experiments.tables import Cell
from hgde.files import write_atomically

SURE = 0.05
COLOURS = {"nodes": "#0072b2", "links": "#d55e00"}


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


def in_short(made: Sequence[Gain]) -> str:
    """How often curvature pays in scores, and how often in distances."""
    counts = Counter(gain.words for gain in made)
    said = [f"{words} on {count} of {len(made)} graphs" for words, count in counts.most_common()]
    known = [gain.distortion for gain in made if not any(map(math.isnan, gain.distortion))]
    if known:
        truer = sum(curved < flat for curved, flat in known)
        said.append(f"distances along the graph are kept better in curved space on {truer} of {len(known)}")
    return "; ".join(said) + "."


def summary_lines(cells: Sequence[tuple[Cell, Row]]) -> list[str]:
    made = gains(cells)
    if not made:
        return []
    lines = [
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
    """One line per graph: differences of scores with two standard errors, and both distortions beside them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 1.4 + 0.26 * max(3, len(made))), layout="constrained", dpi=150)
    scores, distances = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for task, colour in COLOURS.items():
        own = [(place, gain) for place, gain in enumerate(made) if gain.task == task]
        if not own:
            continue
        places = [place for place, _ in own]
        errors = [0.0 if math.isnan(gain.test.error) else 2 * gain.test.error for _, gain in own]
        differences = [gain.test.difference for _, gain in own]
        scores.errorbar(differences, places, xerr=errors, fmt="o", color=colour, capsize=3, markersize=5, label=task)
        curved, flat = ([gain.distortion[k] for _, gain in own] for k in (0, 1))
        distances.hlines(places, curved, flat, color=colour, linewidth=1)
        distances.plot(flat, places, "o", color=colour, markerfacecolor="white", markersize=5)
        distances.plot(curved, places, "o", color=colour, markersize=5)
    scores.axvline(0, color="black", linewidth=0.8)
    # Small differences are most of them; a few, on small test parts, have errors of ten points and more.
    scores.set_xscale("symlog", linthresh=1)
    ticks = (-10, -1, 0, 1, 10)
    scores.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
    scores.minorticks_off()
    scores.set_yticks(range(len(made)), [gain.title for gain in made], fontsize=8)
    scores.invert_yaxis()
    scores.set_title(
        "score: HGDE minus its flat twin, points\n(two standard errors; right: curvature pays)", fontsize=9
    )
    distances.set_title("distortion of distances, left is better\n(filled: HGDE, open: flat twin)", fontsize=9)
    scores.legend(fontsize=8, loc="lower left")
    for axes in (scores, distances):
        axes.grid(axis="x", alpha=0.3)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.removeprefix("."))
    write_atomically(path, buffer.getvalue())
