"""Run the cells of a table, cheap ones first, keep every run as it comes, and write what there is as a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hgde.data import DataError, find_spec
from hgde.data.loading import at_hand, fetch_dataset
from hgde.experiments.jobs import Crew, Done, Job, OnDone, Rounds, run_jobs, run_rounds
from hgde.experiments.places import at_place, key_of
from hgde.experiments.search import Found, Search, Searcher, proposed_before, search_in_rounds
from hgde.experiments.space import exists, space_for
from hgde.experiments.stats import Place, compare_again
from hgde.experiments.store import Store
from hgde.experiments.systems import chooses_itself
from hgde.experiments.table import Row, make_row, unit_of
from hgde.experiments.tables import Cell, Table
from hgde.files import write_atomically
from hgde.sections import overlay

CELLS_AT_ONCE = 4
"""So many searches, each with the runs that follow from it, go on side by side: no process waits for the last trial of
a round."""

SECONDS_BETWEEN_PAGES = 600.0
"""A page is made of all searches of its table, once more; processes wait meanwhile."""

OTHER_RECORDS = {
    "figures": "the paper's figures, drawn by `hgde reproduce figures`",
    "bench.json": "speed and memory beside the peers (`hgde bench`)",
    "scale.json": "a graph of 100 million edges, and two processes against one (`benchmarks/scale.py`)",
    "auto-cost.json": "what choosing a preset costs (`benchmarks/auto_cost.py`)",
    "search-defaults.jsonl": "validation scores that presets were drawn up by (`benchmarks/validate_presets.py`)",
    "paper-settings.jsonl": "PubMed with the paper's settings, every diffusivity (`benchmarks/paper_settings.py`)",
    "stored-columns.jsonl": "columns of version 0.1.0 by its code and by this one (`benchmarks/stored_columns`)",
    "mutation.jsonl": "whether tests notice mistakes (`make mutation`)",
    "hardening-fuzz.json": "mangled files (`make fuzz`)",
    "hardening-kills.json": "kills at random moments (`make kills`)",
    "hardening-soak.json": "several estimators at once for ten minutes (`make soak`)",
}
"""What else is kept in ``results/``."""

Say = Callable[[str], None]


def reproduce(
    table: Table,
    results: Path,
    *,
    only: tuple[str, ...] = (),
    workers: int | Crew = 2,
    minutes: float | None = None,
    retry: bool = False,
    on_done: OnDone | None = None,
    say: Say | None = None,
) -> Store:
    """Do what is missing of a table (or of the cells that ``only`` names), writing the page now and then."""
    say = say or (lambda _: None)
    store = Store(results)
    cells = sorted(usable(table.cells(only), say, fetch=True), key=lambda cell: cell.cost)
    for name in table.missing_systems():
        say(f"there is no system {name}; its row is left out")
    written = time.monotonic()

    def heard(done: Done, count: int, total: int) -> None:
        nonlocal written
        if on_done is not None:
            on_done(done, count, total)
        if time.monotonic() - written > SECONDS_BETWEEN_PAGES:
            write_page(table, results, store)
            written = time.monotonic()

    run_cells(table, cells, store, 1 if table.kind == "cost" else workers, heard, minutes, retry)
    write_page(table, results, store)
    return store


def usable(cells: Iterable[Cell], say: Say, *, fetch: bool = False) -> list[Cell]:
    """Cells whose data is at hand or might be fetched (``fetch``: and is, now); for others, why not, said once.

    Without its data a cell would be nothing but failures, and failures are records that stay.
    """
    known: dict[str, str | None] = {}
    kept = []
    for cell in cells:
        name = cell.data.name
        if name not in known:
            known[name] = why_not(name, fetch=fetch)
            if known[name] is not None:
                say(f"{cell.data.title} is left out: {known[name]}")
        if known[name] is None:
            kept.append(cell)
    return kept


def why_not(data: str, *, fetch: bool) -> str | None:
    """Why there is no such data, in words; ``None`` where it is at hand or might be fetched (``fetch``: was)."""
    try:
        if fetch:
            fetch_dataset(data)
            return None
        spec = find_spec(data)
    except DataError as error:
        return str(error)
    if at_hand(spec) is None and not spec.files:
        return f"{data} is not available (set HGDE_DATA to its folder)"
    return None


def count_missing(table: Table, results: Path, only: tuple[str, ...] = ()) -> int:
    """How many trials and runs of a table are not on disk yet, at most, of the cells that can be run."""
    store = Store(results)
    return sum(_count_missing(table, cell, store) for cell in usable(table.cells(only), lambda _: None))


def _count_missing(table: Table, cell: Cell, store: Store) -> int:
    found = _stored_search(table, cell, store)
    trials = 0 if found is None else table.trials - len(found.trials)
    if trials:
        return len(cell.places) + (trials if table.searched_as(cell) is cell else 0)
    if found is not None and found.best is None:
        return 0  # every trial failed: there is nothing to run
    return sum(store.find(job) is None for job in _final_jobs(cell, found))


def run_cells(
    table: Table,
    cells: Sequence[Cell],
    store: Store,
    workers: int | Crew,
    on_done: OnDone | None = None,
    minutes: float | None = None,
    retry: bool = False,
) -> None:
    """Search, where the table gives trials, then train the chosen settings on every split and seed."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(table.searched_as(cell).path, []).append(cell)
    works = [_in_rounds(table, group, store) for group in groups.values()]
    fresh = table.kind == "cost"
    run_rounds(works, store, workers, on_done, minutes, retry, fresh, at_once=CELLS_AT_ONCE)


def _in_rounds(table: Table, cells: Sequence[Cell], store: Store) -> Rounds[None]:
    """Cells that share a search: the search, then all their runs."""
    found = None
    if table.trials > 1 and cells[0].system.is_trained:
        found = yield from search_in_rounds(search_of(table, cells[0]), store)
        if found.best is None:
            return  # nothing could be trained: the failed trials say why
        if len(found.trials) < table.trials:
            return  # time was up: the search goes on another day, and then chooses
    yield [job for cell in cells for job in _final_jobs(cell, found)]


def search_of(table: Table, cell: Cell) -> Search:
    """The small search of a cell: around its preset, settings that make the cell what it is held fixed."""
    cell = table.searched_as(cell)
    model = cell.system.model
    assert model is not None
    space = tuple(d for d in space_for(model) if not exists(cell.system.changes, d.path))
    folds = tuple((split, 1000 + k) for k, split in enumerate((cell.data.splits * table.folds)[: table.folds]))
    # What a user would have got by default is tried as well, where a model chooses among presets of its own.
    is_other = chooses_itself(model) and cell.settings.get("preset") != "auto"
    starts = (cell.by_default,) if is_other and table.trials > 2 else ()
    return Search(
        cell.path, cell.settings, space, table.trials, folds, starts=starts, length=table.longest_trial_of(cell.data),
        at_once=table.at_once, cost=cell.cost,
    )  # fmt: skip


def settings_found(cell: Cell, found: Found | None) -> Mapping[str, Any]:
    """What a search found, under the protocol of the cell; its own settings where there was none."""
    return cell.settings if found is None else overlay(found.settings, {"data": {"protocol": cell.protocol}})


def places_of(cell: Cell, found: Found | None) -> list[Place]:
    """Splits and seeds to run: fewer seeds where the chosen settings took long to try."""
    if found is None or found.best is None:
        return cell.places
    return cell.places_of_runs(found.best.training_seconds)


def _final_jobs(cell: Cell, found: Found | None) -> list[Job]:
    """The runs that are shown."""
    return [final_job(cell, settings_found(cell, found), place) for place in places_of(cell, found)]


def final_job(cell: Cell, settings: Mapping[str, Any], place: Place) -> Job:
    nested = at_place(dict(settings), place)
    if cell.system.model is None:
        return Job(cell.path, key_of(place), "free", nested, {"baseline": cell.system.name}, cost=cell.cost)
    # Only the table of costs has depths: there, what is measured is time and memory.
    work = "train" if cell.data.depth is None else "cost"
    return Job(cell.path, key_of(place), work, nested, cost=cell.cost)


def stored_row(table: Table, cell: Cell, store: Store) -> Row:
    """What is on disk of a cell, with the settings its search chose."""
    found = _stored_search(table, cell, store)
    jobs = _final_jobs(cell, found)
    stored = [done for job in jobs if (done := store.find(job)) is not None]
    # A search that was not begun, or with settings that are no more, has not failed.
    is_begun = found is not None and len(found.trials) > 0
    return make_row(cell.system, stored, len(jobs), found if is_begun else None)


def _stored_search(table: Table, cell: Cell, store: Store) -> Found | None:
    """What is on disk of the search that settles a cell's settings, gone through once more; None if it has none."""
    if not cell.system.is_trained or table.trials <= 1:
        return None
    search = search_of(table, cell)
    searcher = Searcher(search, proposed_before(search, store))
    while jobs := searcher.next_jobs():
        searcher.tell([done for job in jobs if (done := store.find(job)) is not None])
    return searcher.found()


def write_page(table: Table, results: Path, store: Store) -> Path:
    """Write ``results/TABLE.md`` from what is on disk."""
    from hgde.experiments.table_report import page

    cells = [(cell, stored_row(table, cell, store)) for cell in table.cells() if _is_begun(store, cell)]
    path = results / f"{table.name}.md"
    write_atomically(path, page(table, cells).encode())
    if table.kind == "curvature":
        from hgde.experiments.curvature import draw_gains, gains

        draw_gains(gains(cells), results / "curvature.png")
    return path


def write_index(results: Path) -> Path:
    """``results/README.md``: what is there, in a minute."""
    from hgde.experiments.headlines import headline_of
    from hgde.experiments.tables import NAMES, load_table

    lines = [
        "# Results", "",
        "One page per table, and one JSON file per cell with every run and every trial. `hgde reproduce TABLE` makes a "
        "table; `hgde reproduce TABLE --quick` repeats a few of its runs and compares.",
        "Settings were chosen on validation parts alone. Figures called *published* are the paper's; all others were "
        "measured here.", "", "| table | what | in short | cells | runs |", "| --- | --- | --- | ---: | ---: |",
    ]  # fmt: skip
    store = Store(results)
    for name in NAMES:
        cells = store.cells(name)
        if cells and (results / f"{name}.md").exists():
            runs = sum(not key.startswith("trial") for cell in cells for key, _ in store.records(cell))
            what, said = load_table(name).title, headline_of(results / f"{name}.md")
            lines.append(f"| [{name}]({name}.md) | {what} | {said} | {len(cells)} | {runs} |")
    others = [f"| `{name}` | {what} |" for name, what in OTHER_RECORDS.items() if (results / name).exists()]
    if others:
        lines += ["", "Beside the tables:", "", "| records | of what |", "| --- | --- |", *others]
    path = results / "README.md"
    write_atomically(path, ("\n".join(lines) + "\n").encode())
    return path


def _is_begun(store: Store, cell: Cell) -> bool:
    return bool(store.content(cell.path)["records"])


@dataclass(frozen=True)
class Check:
    """One stored run done again."""

    cell: Cell
    place: Place
    stored: float
    again: float | None
    verdict: str
    interval: tuple[float, float]
    failure: str | None = None


def check_again(
    table: Table,
    results: Path,
    scratch: Path,
    *,
    only: tuple[str, ...] = (),
    most: int = 6,
    workers: int | Crew = 2,
    say: Say | None = None,
) -> list[Check]:
    """Do the first run of the cheapest stored cells again, from nothing, and compare with what is stored."""
    store, again = Store(results), Store(scratch)
    rows = []
    for cell in sorted(usable(table.cells(only), say or (lambda _: None), fetch=True), key=lambda cell: cell.cost):
        row = stored_row(table, cell, store) if _is_begun(store, cell) else None
        if row is not None and row.scores and cell.system.is_trained:
            rows.append((cell, row))
    chosen = _spread_over_systems(rows, most)
    jobs = {cell.path: final_job(cell, row.settings, min(row.scores)) for cell, row in chosen}
    outcomes = {done.job.cell: done for done in run_jobs(jobs.values(), again, workers)}
    return [_check(cell, row, outcomes.get(cell.path)) for cell, row in chosen]


def _spread_over_systems(rows: Sequence[tuple[Cell, Row]], most: int) -> list[tuple[Cell, Row]]:
    """At most so many, the cheapest of every system first."""
    seen: dict[str, int] = {}
    numbered = []
    for cell, row in sorted(rows, key=lambda pair: pair[0].cost):
        seen[cell.system.name] = seen.get(cell.system.name, 0) + 1
        numbered.append((seen[cell.system.name], cell.cost, cell, row))
    numbered.sort(key=lambda entry: entry[:2])
    return [(cell, row) for _, _, cell, row in numbered[:most]]


def _check(cell: Cell, row: Row, done: Done | None) -> Check:
    place = min(row.scores)
    if done is None or done.result is None:
        words = "it was not run" if done is None else done.failure
        return Check(cell, place, row.scores[place], None, "different", (float("nan"), float("nan")), words)
    score = unit_of(row.metric) * done.result["test"][row.metric]
    verdict, interval = compare_again(score, row.scores, place)
    return Check(cell, place, row.scores[place], score, verdict, interval)
