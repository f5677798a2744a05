"""What the table of defaults comes to: ranks, how often the default is level with the best, the worst gap to a GCN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hgde.experiments.table import Row
from hgde.experiments.tables import Cell
from hgde.tasks import TASKS
from hgde.tasks.metrics import PAIRS

HALF_A_POINT = 0.5
HEURISTICS = ("common-neighbours", "adamic-adar", "feature-forest")


@dataclass(frozen=True)
class Standing:
    """One system over many graphs: mean rank, share of graphs within half a point of the best, worst gap to GCN."""

    system: str
    graphs: int
    rank: float
    within: float
    worst_to_gcn: float | None
    worst_on: str


def standings(scores: dict[str, dict[str, float]]) -> list[Standing]:
    """From ``scores[graph][system]`` (larger is better); graphs where a system is missing do not count for it."""
    from scipy.stats import rankdata

    systems = list(dict.fromkeys(name for row in scores.values() for name in row))
    ranks: dict[str, list[float]] = {name: [] for name in systems}
    for row in scores.values():
        names = list(row)
        for name, rank in zip(names, rankdata([-row[name] for name in names]), strict=True):
            ranks[name].append(float(rank))
    made = []
    for name in systems:
        own = {graph: row for graph, row in scores.items() if name in row}
        within = [row[name] >= max(row.values()) - HALF_A_POINT for row in own.values()]
        gaps = {graph: row[name] - row["gcn"] for graph, row in own.items() if "gcn" in row and name != "gcn"}
        worst = min(gaps, key=gaps.__getitem__, default="")
        made.append(
            Standing(name, len(own), float(np.mean(ranks[name])), float(np.mean(within)), gaps.get(worst), worst)
        )
    return sorted(made, key=lambda standing: standing.rank)


def _beside_accuracy(cells: Sequence[tuple[Cell, Row]]) -> list[str]:
    """What accuracy does not say: macro-F1, which rare classes count in fully, and how far probabilities are off."""
    means: dict[str, list[tuple[float, float]]] = {}
    for cell, row in cells:
        if row.scores and len(row.scores) == row.expected and "macro_f1" in row.also:
            means.setdefault(cell.system.name, []).append((row.also["macro_f1"], row.also["calibration_error"]))
    if "hgde" not in means:
        return []
    lines = [
        "", "Beside accuracy, on average over the graphs that a system has finished:", "",
        "| system | graphs | macro F1 | calibration error |", "| --- | ---: | ---: | ---: |",
    ]  # fmt: skip
    for name, own in means.items():
        f1, calibration = (float(np.mean(column)) for column in zip(*own, strict=True))
        lines.append(f"| {name} | {len(own)} | {100 * f1:.1f} | {calibration:.3f} |")
    return lines


def node_scores(cells: Sequence[tuple[Cell, Row]]) -> dict[str, dict[str, float]]:
    """Mean scores of nodes by graph and system, of the graphs on which HGDE has something to be compared with."""
    return _compared(_scores(cells, of_pairs=False))


def link_scores(cells: Sequence[tuple[Cell, Row]]) -> dict[str, dict[str, float]]:
    """The same of links."""
    return _compared(_scores(cells, of_pairs=True))


def _compared(scores: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {graph: row for graph, row in scores.items() if "hgde" in row and len(row) > 1}


def _scores(cells: Sequence[tuple[Cell, Row]], of_pairs: bool) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for cell, row in cells:
        is_done = row.scores and len(row.scores) == row.expected
        if is_done and (TASKS.get(cell.data.task).kind == PAIRS) == of_pairs:
            scores.setdefault(cell.data.title, {})[cell.system.name] = row.spread.mean
    return scores


def summary_lines(cells: Sequence[tuple[Cell, Row]]) -> list[str]:
    """Markdown: who stands where for nodes, then for links."""
    links = link_scores(cells)
    lines = [*_standing_lines("classes of nodes", node_scores(cells)), *_beside_accuracy(cells)]
    lines += _standing_lines("links", links)
    ahead = {
        graph: all(row["hgde"] > row[name] for name in HEURISTICS if name in row)
        for graph, row in links.items()
        if any(name in row for name in HEURISTICS)
    }
    if ahead:
        behind = [graph for graph, is_ahead in ahead.items() if not is_ahead]
        lines += [
            "",
            f"Links: HGDE is ahead of common neighbours, Adamic-Adar and the forest on feature differences on "
            f"{sum(ahead.values())} of {len(ahead)} graphs" + (f" (not on {', '.join(behind)})." if behind else "."),
        ]
    return [*lines, ""] if lines else []


def _standing_lines(what: str, scores: dict[str, dict[str, float]]) -> list[str]:
    if not scores:
        return []
    lines = [
        "", f"For {what}, over {len(scores)} graphs:", "",
        "| system | mean rank | within half a point of the best | worst gap to GCN |",
        "| --- | ---: | ---: | --- |",
    ]  # fmt: skip
    for standing in standings(scores):
        gap = "" if standing.worst_to_gcn is None else f"{standing.worst_to_gcn:+.2f} ({standing.worst_on})"
        share = f"{100 * standing.within:.0f} % of {standing.graphs}"
        lines.append(f"| {standing.system} | {standing.rank:.2f} | {share} | {gap} |")
    return lines
