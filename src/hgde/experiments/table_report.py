"""A table of results as a page: the budget in its head, ours and published side by side, verdicts at two errors."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence

from hgde.experiments.compare_report import count
from hgde.experiments.extras import with_legend
from hgde.experiments.headlines import LEVEL, MARK, Column, headline, whole_columns
from hgde.experiments.stats import UNDECIDED, verdict
from hgde.experiments.table import Row, unit_of
from hgde.experiments.tables import LONG_RUN, SEEDS_OF_LONG_RUNS, Cell, Data, Table
from hgde.experiments.work import Length

Pairs = Sequence[tuple[Cell, Row]]


def page(table: Table, cells: Pairs) -> str:
    """Markdown for whatever cells there are."""
    said = headline(table, cells)
    lines = [f"# {table.title}", "", table.text, "", *([MARK + said, ""] if said else []), _budget(table, cells)]
    lines += [*_legend(cells), ""]
    if table.kind == "cost":
        lines += _cost(table, cells)
    elif table.kind == "peers":
        lines += _peers(cells)
    else:
        if table.kind == "defaults":
            from hgde.experiments.defaults import summary_lines

            lines += summary_lines(cells)
        if table.kind == "curvature":
            from hgde.experiments.curvature import summary_lines as curvature_lines

            lines += curvature_lines(cells)
        if table.published:
            lines += _verdict_lines(cells)
        whole = whole_columns(table, cells)
        for data in table.data:
            own = [(cell, row) for cell, row in cells if cell.data is data]
            if own:
                lines += _section(table, data, own, whole)
    lines += _failures(cells)
    return "\n".join(lines).rstrip() + "\n"


def _budget(table: Table, cells: Pairs) -> str:
    done = sum(len(row.scores) for _, row in cells)
    wanted = sum(row.expected for _, row in cells)
    if table.trials == 1:
        words = "no search: every system has its preset; then the runs that are shown"
    else:
        words = (
            f"{table.trials} trials for every trained system, its published preset being the first, each the mean of "
            f"{table.folds} run{'s' if table.folds > 1 else ''}{_at_most(table.longest_trial)}, chosen by the "
            "cross-fitted score of the validation part"
        )
        if table.at_once is not None:
            words += f", each changing {table.at_once} settings of the best before it"
        if table.searched is not None:
            words += f" under the protocol `{table.searched}`, for every protocol"
        words += (
            f"; then the runs that are shown{_at_most(table.longest_run)}, {SEEDS_OF_LONG_RUNS} seeds at most where "
            f"one takes over {LONG_RUN:.0f} seconds"
        )
    return (
        f"Budget: {words}. Here: {done} of {wanted} runs of the cells begun. "
        f"Written by `hgde reproduce {table.name}`; records in `{table.name}/`."
    )


def _legend(cells: Pairs) -> list[str]:
    """What the extras of any row are."""
    said = with_legend(words for _, row in cells for words in row.extras)
    if not said:
        return []
    return [
        "",
        f"Extras, beside training on the loss: {'; '.join(said)}. A name with a plus is that system with extras.",
    ]


def _at_most(length: Length | None) -> str:
    return "" if length is None else f" of at most {length.epochs} epochs, {length.patience} without improvement"


def _own_budget(table: Table, data: Data) -> list[str]:
    """In which way a column differs from the table's head."""
    words = []
    if data.longest_trial is not None:
        words.append(f"trials{_at_most(data.longest_trial)}")
    if data.longest_run is not None:
        words.append(f"runs{_at_most(data.longest_run)}")
    if data.searched_apart and table.searched is not None:
        words.append("a search for each protocol, since their inputs differ")
    said = [f"Here, for all systems: {'; '.join(words)}."] if words else []
    if data.without:
        said.append(f"Not run here, for the time it would take: {', '.join(data.without)}.")
    return [" ".join(said), ""] if said else []


def _one_split(data: Data, rows: Sequence[Row]) -> list[str]:
    """What standard errors leave out where every run is tested on the same items."""
    done = [row for row in rows if row.scores and row.tested]
    if len(data.splits) > 1 or not done:
        return []
    best = max(done, key=lambda row: row.gain)
    words = f"One split, {best.tested} tested: standard errors are of seeds alone, and who is tested is chance besides"
    if best.metric == "accuracy":
        share = best.spread.mean / unit_of(best.metric)
        error = unit_of(best.metric) * math.sqrt(share * (1 - share) / best.tested)
        words += f" ({error:.1f} points at the best score here, much of it common to all systems)"
    return [f"{words}.", ""]


def _section(table: Table, data: Data, cells: Pairs, whole: Collection[Column]) -> list[str]:
    has_published = bool(table.published)
    metric = next((row.metric for _, row in cells if row.scores), "score").replace("_", " ")
    head = ["system", *(f"{metric}, {protocol}" for protocol in data.protocols), "s.e.", "runs"]
    if has_published:
        head += ["published", "difference", "verdict"]
    shows_more = any("macro_f1" in row.also for _, row in cells)
    head += ["macro F1", "calibration error"] if shows_more else []
    shows_extras = any(row.extras for _, row in cells)
    head += ["extras"] if shows_extras else []
    # No times: runs share their machine with one another and with other work. The table of cost has them.
    head += ["parameters"]
    lines = ["", f"## {data.title}", "", *_own_budget(table, data), *_one_split(data, [row for _, row in cells])]
    lines += ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    by_system: dict[str, dict[str, tuple[Cell, Row]]] = {}
    for cell, row in cells:
        by_system.setdefault(cell.system.name, {})[cell.protocol] = (cell, row)
    best = {
        protocol: max(row.gain for cell, row in cells if cell.protocol == protocol)
        for protocol in data.protocols
        if (data.key, protocol) in whole
    }
    for name, own in by_system.items():
        shown = [_score(own.get(protocol), best.get(protocol)) for protocol in data.protocols]
        cell, row = own.get(data.protocols[0]) or next(iter(own.values()))
        line = [name, *shown, _number(row.spread.error, 2), f"{len(row.scores)}/{row.expected}"]
        if has_published:
            line += _beside_published(cell, row)
        if shows_more:
            line += [_number(100 * row.also.get("macro_f1", math.nan), 1)]
            line += [_number(row.also.get("calibration_error", math.nan), 3)]
        if shows_extras:
            line.append(", ".join(dict.fromkeys(words for _, each in own.values() for words in each.extras)))
        line += [count(row.parameters)]
        lines.append("| " + " | ".join(line) + " |")
    return lines


def _score(pair: tuple[Cell, Row] | None, best: float | None = None) -> str:
    if pair is None:
        return ""
    row = pair[1]
    if not row.scores:
        return "failed" if row.failures else "not yet"
    text = f"{row.spread.mean:.2f} ± {row.spread.std:.2f}"
    return f"**{text}**" if row.gain == best else text


def _beside_published(cell: Cell, row: Row) -> list[str]:
    if cell.published is None:
        return ["", "", ""]
    mean, std = cell.published
    shown = f"{mean:.1f}" + ("" if std is None else f" ± {std:.1f}")
    if not row.scores:
        return [shown, "", ""]
    return [shown, f"{row.spread.mean - mean:+.2f}", verdict(row.spread, cell.published)]


def _verdict_lines(cells: Pairs) -> list[str]:
    """How many published figures of the paper's own system are reached, and the best of all systems where not."""
    lines = []
    ours = [(cell, row) for cell, row in cells if cell.system.model == "hgde" and cell.published and row.scores]
    for cell, row in ours:
        if cell.protocol != cell.data.protocols[0] or cell.published is None:
            continue
        said = verdict(row.spread, cell.published)
        rivals = [(c, r) for c, r in cells if c.data is cell.data and c.protocol == cell.protocol and r.scores]
        best_cell, best = max(rivals, key=lambda pair: pair[1].spread.mean)
        words = (
            f"- {cell.data.title}, {cell.system.name}: {row.spread.mean:.2f} against {cell.published[0]:.1f}, {said}"
        )
        if said != "reached" and best_cell.system.name != cell.system.name:
            words += f"; best of all systems here: {best_cell.system.name}, {best.spread.mean:.2f}"
        lines.append(words)
    if not lines:
        return []
    note = (
        "Verdicts at two standard errors of the difference; the published mean's own error is its deviation over the "
        f"root of ten. *{UNDECIDED}*: nearer than that."
    )
    return [note, "", *lines, ""]


def _cost(table: Table, cells: Pairs) -> list[str]:
    head = ["system", *(data.title for data in table.data)]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    names = dict.fromkeys(cell.system.name for cell, _ in cells)
    for name in names:
        line = [name]
        for data in table.data:
            row = next((r for c, r in cells if c.data is data and c.system.name == name), None)
            line.append("" if row is None else "failed" if not row.scores else _time_and_memory(row))
        lines.append("| " + " | ".join(line) + " |")
    lines += ["", "Published (authors' GPU, ms and MB):", "", "| " + " | ".join(head) + " |"]
    lines.append("| --- |" + " ---: |" * (len(head) - 1))
    for name in table.published:
        if name == "columns":
            continue
        figures = [f"{pair[0]:g} ms, {pair[1]:g} MB" if pair else "out of memory" for pair in table.published[name]]
        lines.append("| " + " | ".join([name, *figures]) + " |")
    return lines


def _peers(cells: Pairs) -> list[str]:
    head = ["system", "data", "score", "here", "s.e.", "runs", "authors' code", "difference", f"within {LEVEL:g}"]
    lines = ["| " + " | ".join(head) + " |", "| --- | --- | --- |" + " ---: |" * (len(head) - 3)]
    for cell, row in sorted(cells, key=lambda pair: pair[0].system.name):
        theirs, difference, _ = _beside_published(cell, row)
        shown = [_score((cell, row)), _number(row.spread.error, 2), f"{len(row.scores)}/{row.expected}"]
        metric = row.metric.replace("_", " ") if row.scores else ""
        line = [cell.system.name, cell.data.title, metric, *shown, theirs, difference, _is_level(cell, row)]
        lines.append("| " + " | ".join(line) + " |")
    return lines


def _is_level(cell: Cell, row: Row) -> str:
    if not row.scores or cell.published is None:
        return ""
    difference = row.spread.mean - cell.published[0]
    return "yes" if abs(difference) <= LEVEL else "above" if difference > 0 else "**no**"


def _time_and_memory(row: Row) -> str:
    return f"{row.epoch_ms:.1f} ms, {row.peak_mib:.0f} MiB"


def _failures(cells: Pairs) -> list[str]:
    lines = [f"- {cell.path.partition('/')[2]}: {words}" for cell, row in cells for words in row.failures]
    return ["", "## Failures", "", *lines] if lines else []


def _number(value: float, digits: int) -> str:
    return "" if math.isnan(value) or value < 0.5 * 10**-digits else f"{value:.{digits}f}"


def mean_of(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else math.nan
