"""Run the rows of a table, keep every run as it comes, and compare with what was published."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hgde.experiments.rows import TABLES, Row
from hgde.report.tables import markdown
from hgde.settings import Settings
from hgde.training.checkpoint import write_atomically

RUNS_A_POOL = 40
"""Then new processes take over, so that memory does not grow. (A pool that replaces its own workers can hang.)"""


@dataclass(frozen=True)
class Job:
    """One run of one column of one row."""

    row: Row
    column: str
    run: int

    @property
    def name(self) -> str:
        return f"{self.row.table}/{self.row.key}/{self.column}"


@dataclass
class ColumnResult:
    """All runs of a column. What is stored on disk, and all that a report reads."""

    table: str
    row: str
    title: str
    note: str
    column: str
    published: tuple[float, float] | None
    metric: str
    settings: dict[str, Any]
    versions: dict[str, str]
    runs: list[dict[str, Any]]
    baselines: dict[str, list[float]]
    leak_free: bool = False

    @property
    def scores(self) -> list[float]:
        return [100 * run["test"][self.metric] for run in self.runs]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores)

    @property
    def std(self) -> float:
        return statistics.stdev(self.scores) if len(self.scores) > 1 else 0.0


def result_path(out: Path, job: Job) -> Path:
    return out / job.row.table / f"{job.row.key}--{job.column}.json"


def load_result(path: Path) -> ColumnResult | None:
    if not path.exists():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    content["published"] = tuple(content["published"]) if content["published"] else None
    return ColumnResult(**content)


def run_job(job: Job, threads: int) -> dict[str, Any]:
    """Train one run and return what is kept of it (in a process of its own)."""
    import torch

    from hgde.experiments.trivial import trivial_baselines
    from hgde.training.prepare import load_dataset, make_task
    from hgde.training.run import train, versions

    torch.set_num_threads(threads)
    settings = job.row.settings_of(job.column, job.run)
    dataset = load_dataset(settings)
    task = make_task(dataset, settings)
    summary = train(settings, dataset=dataset, task=task)
    outcome = summary.outcomes[0]
    kept = {k: v for k, v in asdict(outcome).items() if k != "history"}
    kept |= {"split": settings.split, "split_hash": summary.split_hash, "data_hash": summary.data_hash}
    baselines = trivial_baselines(task, summary.metric) if job.run == 0 or job.row.vary == "split" else {}
    return {"metric": summary.metric, "run": kept, "baselines": baselines, "versions": versions()}


def pending(rows: list[Row], out: Path, runs: int | None) -> Iterator[Job]:
    """The jobs that are not on disk yet with the same settings."""
    for row in rows:
        for column in row.columns:
            done: set[int] = set()
            found = load_result(result_path(out, Job(row, column, 0)))
            if found is not None and _same_settings(found, row.settings_of(column, 0)):
                done = {run["seed"] for run in found.runs}
            for run in range(row.runs if runs is None else min(runs, row.runs)):
                if run not in done:
                    yield Job(row, column, run)


def reproduce(
    rows: list[Row],
    out: Path,
    *,
    runs: int | None = None,
    workers: int = 2,
    on_done: Callable[[Job, dict[str, Any] | BaseException, int, int], None] | None = None,
) -> list[ColumnResult]:
    """Run what is missing and return the results of all columns.

    Each run has a process and a thread of its own, because one run cannot use two cores as well as two runs can. A
    finished run is on disk at once, so that a stopped table goes on where it was.
    """
    jobs = list(pending(rows, out, runs))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    finished = 0
    for first in range(0, len(jobs), RUNS_A_POOL):
        for job, outcome in _run_side_by_side(jobs[first : first + RUNS_A_POOL], workers):
            if not isinstance(outcome, BaseException):
                _keep(out, job, outcome)
            finished += 1
            if on_done is not None:
                on_done(job, outcome, finished, len(jobs))
    found = [load_result(result_path(out, Job(row, column, 0))) for row in rows for column in row.columns]
    return [result for result in found if result is not None]


def _run_side_by_side(jobs: list[Job], workers: int) -> Iterator[tuple[Job, dict[str, Any] | BaseException]]:
    """Each job with what came of it, in the order they finish."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=min(workers, len(jobs)), mp_context=context) as pool:
        futures: dict[Future[dict[str, Any]], Job] = {pool.submit(run_job, job, 1): job for job in jobs}
        for future in as_completed(futures):
            error = future.exception()
            yield futures[future], error if error is not None else future.result()


def _same_settings(result: ColumnResult, settings: Settings) -> bool:
    """Whether a result was made with these settings; a setting that did not exist then counts as its default."""
    return {**Settings().to_dict(), **result.settings} == settings.to_dict()


def expected_minutes(jobs: list[Job], stored: Path, workers: int) -> float | None:
    """How long the jobs took when they were stored; ``None`` if some never were."""
    results = [load_result(result_path(stored, job)) for job in jobs]
    times = [statistics.fmean(run["seconds"] for run in result.runs) for result in results if result and result.runs]
    return sum(times) / 60 / workers if len(times) == len(jobs) else None


def _keep(out: Path, job: Job, finished: dict[str, Any]) -> None:
    path = result_path(out, job)
    settings = job.row.settings_of(job.column, 0)
    result = load_result(path)
    if result is None or not _same_settings(result, settings):
        row = job.row
        result = ColumnResult(
            row.table, row.key, row.title, row.note, job.column, row.published,
            finished["metric"], settings.to_dict(), finished["versions"], [], {}, row.leak_free,
        )  # fmt: skip
    result.title, result.note, result.published = job.row.title, job.row.note, job.row.published
    result.leak_free = job.row.leak_free
    result.runs = sorted([*result.runs, finished["run"]], key=lambda run: int(run["seed"]))
    for name, score in finished["baselines"].items():
        result.baselines.setdefault(name, []).append(score)
    write_atomically(path, (json.dumps(asdict(result), indent=1) + "\n").encode())


def write_report(out: Path) -> None:
    """``README.md`` with every result in the folder, table by table."""
    sections = []
    for name, title in TABLES.items():
        found = [load_result(path) for path in sorted((out / name).glob("*.json"))]
        results = [result for result in found if result is not None and result.runs]
        if results:
            notes = dict.fromkeys(f"- {result.title}: {result.note}" for result in results if result.note)
            sections.append(markdown(title, results) + "\n".join(["", *notes, ""]))
    (out / "README.md").write_text(_HEAD + "\n".join(sections), encoding="utf-8")


_HEAD = """# Results

Test scores in %, mean ± sample standard deviation. *Published* figures are the paper's; all others were measured by
`hgde reproduce`, which wrote this page. A row is *reached* when our mean is at most one published standard deviation
below the published mean. The column says which reading of the row it is: `published` follows the literature's protocol,
faults included, `clean` has no leak, others are what the paper leaves open. Planetoid's public split and the ten fixed
WebKB splits have no leak: `published = clean`.

"""
