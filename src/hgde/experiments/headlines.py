"""A table in one sentence: what stands at the head of its page and in the list of all tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from hgde.experiments.curvature import gains, in_short
from hgde.experiments.defaults import link_scores, node_scores, standings
from hgde.experiments.stats import NOT_REACHED, REACHED, UNDECIDED, verdict
from hgde.experiments.table import Row
from hgde.experiments.tables import Cell, Table

Pairs = Sequence[tuple[Cell, Row]]
Column = tuple[str, str]
MARK = "**In short:** "

LEVEL = 2.0
"""Points within which an implementation is level with its authors' code."""


def headline(table: Table, cells: Pairs) -> str:
    """The sentence; empty while nothing is finished."""
    finished = _finished(cells)
    if not finished:
        return ""
    return _BY_KIND[table.kind](finished) if table.kind in _BY_KIND else _scores(table, finished)


def whole_columns(table: Table, cells: Pairs) -> set[Column]:
    """Columns, as data and protocol, on which no system is still to be run: only these have a best one."""
    done = Counter(column_of(cell) for cell, _ in _finished(cells))
    return {column for column, count in Counter(map(column_of, table.cells())).items() if 1 < done[column] == count}


def column_of(cell: Cell) -> Column:
    return cell.data.key, cell.protocol


def _finished(cells: Pairs) -> Pairs:
    return [(cell, row) for cell, row in cells if row.scores and len(row.scores) >= row.expected]


def headline_of(page: Path) -> str:
    """The sentence that a page begins with."""
    lines = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    return next((line.removeprefix(MARK) for line in lines if line.startswith(MARK)), "")


def _scores(table: Table, cells: Pairs) -> str:
    """The best system by column, and how many published figures are reached, HGDE's own and the others'."""
    whole, count = whole_columns(table, cells), len({column_of(cell) for cell in table.cells()})
    columns: dict[Column, list[tuple[float, str]]] = {column: [] for column in whole}
    for cell, row in cells:
        columns.get(column_of(cell), []).append((row.gain, cell.system.name))
    best = Counter(max(found)[1] for found in columns.values())
    said = [f"best of all: {_counted(best)} of {len(whole)} columns"] if best else []
    if len(whole) < count:
        said.append(f"{count - len(whole)} of {count} columns are not complete")
    for name, is_own in (("HGDE", True), ("the others", False)):
        verdicts = Counter(
            verdict(row.spread, cell.published)
            for cell, row in cells
            if cell.published and (cell.system.model == "hgde") == is_own and cell.protocol == cell.data.protocols[0]
        )
        if verdicts:
            counts = ", ".join(f"{verdicts[words]} {words}" for words in (REACHED, UNDECIDED, NOT_REACHED))
            said.append(f"published figures of {name}: {counts}")
    return "; ".join(said) + "." if said else ""


def _counted(names: Counter[str]) -> str:
    return ", ".join(f"{name} on {count}" for name, count in names.most_common(4))


def _cost(cells: Pairs) -> str:
    """HGDE at the greatest depth beside the cheapest and the dearest of the others."""
    deepest = max((cell.data.depth or 0 for cell, _ in cells), default=0)
    last = {cell.system.name: row for cell, row in cells if cell.data.depth == deepest}
    own = last.pop("hgde", None)
    others = sorted((row.epoch_ms, name) for name, row in last.items() if not name.startswith("hgde"))
    if own is None or not others:
        return ""
    (low, cheapest), (high, dearest) = others[0], others[-1]
    return (
        f"at depth {deepest} an epoch of HGDE takes {own.epoch_ms:.0f} ms and {own.peak_mib:.0f} MiB, of the others "
        f"{low:.0f} ms ({cheapest}) to {high:.0f} ms ({dearest})."
    )


def _peers(cells: Pairs) -> str:
    """How many implementations are level with their authors' code."""
    gaps = [row.spread.mean - cell.published[0] for cell, row in cells if cell.published is not None]
    level, above = sum(abs(gap) <= LEVEL for gap in gaps), sum(gap > LEVEL for gap in gaps)
    words = f"{level} of {len(gaps)} within {LEVEL:g} points of the authors' code"
    return words + (f", {above} above." if above else ".")


def _defaults(cells: Pairs) -> str:
    said = []
    for what, scores in (("classes", node_scores(cells)), ("links", link_scores(cells))):
        if scores:
            first, *others = standings(scores)
            words = f"{what}: over {len(scores)} graphs {first.system} has the best mean rank, {first.rank:.2f}"
            said.append(words + (f" (next: {others[0].system}, {others[0].rank:.2f})" if others else ""))
    return "; ".join(said) + "." if said else ""


def _curvature(cells: Pairs) -> str:
    return in_short(gains(cells))


_BY_KIND: dict[str, Callable[[Pairs], str]] = {
    "cost": _cost,
    "peers": _peers,
    "defaults": _defaults,
    "curvature": _curvature,
}
