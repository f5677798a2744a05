"""One command: ``python -m benchmarks.stored_columns`` (resumable; needs the history and the data sets)."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BEFORE = "14ba9f30333741114ae04bb1c0c81af3ab66cd17"
"""The last commit of 0.1.0; its rows and stored results are read from the history."""

COLUMNS = (
    "depth/citeseer-t04/published",
    "depth/cora-t04/published",
    "depth/cora-t08/published",
    "hetero/texas/published",
    "hetero/wisconsin/published",
    "nodes/disease-tree-e/published",
    "nodes/disease-tree-e/clean",
    "nodes/disease-tree-i/published",
    "nodes/disease-tree-i/clean",
    "nodes/disease-sim-e/published",
    "nodes/disease-sim-e/clean",
    "nodes/disease-sim-i/published",
    "nodes/disease-sim-i/clean",
    "links/cora-e/published",
    "links/cora-e/clean",
    "links/cora-i/clean",
    "few-labels/20news-100/clean",
    "best/citeseer/whole-graph",
)
EXPLAINED = 3
"""Runs that differ from what is stored, and are looked into."""
ROOT = Path(__file__).parents[2]
EPOCHS_SHOWN = (1, 5, 20)


@dataclass(frozen=True)
class Run:
    """A score and the losses of the first epochs of one run by one code in one dtype."""

    column: str
    run: int
    code: str
    dtype: str
    score: float
    losses: tuple[float, ...] = ()


class History:
    """What the repository held before: rows, results and source."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        archive = subprocess.run(["git", "archive", BEFORE, "src"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)

    def stored(self, column: str) -> list[float]:
        table, key, name = column.split("/")
        content = json.loads(_git("show", f"{BEFORE}:results/{table}/{key}--{name}.json"))
        return [100 * run["test"][content["metric"]] for run in content["runs"]]

    def row(self, column: str) -> Path:
        table, key, _ = column.split("/")
        return self.source / "hgde" / "experiments" / "rows" / table / f"{key}.toml"

    def run(self, column: str, run: int, code: str, dtype: str) -> Run:
        """Train once, in a process of its own, by the code of ``before`` or of ``now``."""
        folder = Path(__file__).parent
        if code == "before":
            source, command = self.source, [str(folder / "before.py"), column]
        else:
            source, command = ROOT / "src", [str(folder / "now.py"), str(self.row(column)), column.split("/")[2]]
        environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, *command, str(run), dtype], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{column}, run {run}, {code} in {dtype} failed:\n{done.stderr[-2000:]}")
        content = json.loads(done.stdout.strip().splitlines()[-1])
        losses = tuple(content["losses"][: max(EPOCHS_SHOWN)])
        return Run(column, run, code, dtype, content["score"], losses)


class Kept:
    """Finished runs on disk, one line each."""

    def __init__(self, path: Path, history: History) -> None:
        self.path, self.history = path, history
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        runs = [Run(**{**json.loads(line), "losses": tuple(json.loads(line)["losses"])}) for line in lines]
        self.runs = {(run.column, run.run, run.code, run.dtype): run for run in runs}

    def get(self, column: str, run: int, code: str, dtype: str) -> Run:
        key = (column, run, code, dtype)
        if key not in self.runs:
            self.runs[key] = self.history.run(*key)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(self.runs[key])) + "\n")
        return self.runs[key]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stored_columns", description=__doc__)
    parser.add_argument("columns", nargs="*", default=COLUMNS, metavar="TABLE/ROW/COLUMN")
    parser.add_argument("--runs", type=int, help="the first so many runs of each column (all)")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "stored-columns.jsonl")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(options.out, History(Path(folder)))
        verdicts = []
        for column in options.columns:
            verdict, words = compare(kept, column, options.runs)
            verdicts.append(verdict)
            print(f"{column:32s} {verdict:9s} {words}", flush=True)
    runs, printed = verdicts.count("equal"), verdicts.count("printed")
    print(
        f"{runs + printed} of {len(verdicts)} columns give the stored score to the printed digit, {runs} in every run"
    )


def compare(kept: Kept, column: str, most: int | None) -> tuple[str, str]:
    """The nearest of five: *equal* in every run; *printed*, as the table prints the column, mean and deviation;
    and of the first runs that differ *machine*, as 0.1.0 gives here; *rounding*, as it gives in float64; *changed*."""
    stored = kept.history.stored(column)[:most]
    now = [kept.get(column, run, "now", "float32").score for run in range(len(stored))]
    differing = [run for run, pair in enumerate(zip(now, stored, strict=True)) if not _same(*pair)]
    same = len(stored) - len(differing)
    figures = f"stored {_printed(stored)}, now {_printed(now)}; {same} of {len(stored)} runs the same"
    if not differing:
        return "equal", figures
    if _printed(now) == _printed(stored):
        return "printed", figures
    runs = differing[:EXPLAINED]
    figures += f"; of runs {', '.join(map(str, runs))}"
    if all(_same(now[run], kept.get(column, run, "before", "float32").score) for run in runs):
        return "machine", f"{figures} 0.1.0 on this machine gives the scores of now"
    exact = [(kept.get(column, run, "before", "float64"), kept.get(column, run, "now", "float64")) for run in runs]
    agree = sum(_same(one.score, other.score) for one, other in exact)
    figures += f" {agree} have the same score in float64; losses of the first apart by {_loss_differences(*exact[0])}"
    return ("rounding" if agree == len(runs) else "changed"), figures


def _loss_differences(a: Run, b: Run) -> str:
    pairs = list(zip(a.losses, b.losses, strict=False))
    shown = [(epoch, *pairs[epoch - 1]) for epoch in EPOCHS_SHOWN if epoch <= len(pairs)]
    return ", ".join(f"{abs(x - y) / abs(x):.0e} at epoch {epoch}" for epoch, x, y in shown)


def _digits(score: float) -> str:
    return f"{score:.1f}"


def _same(a: float, b: float) -> bool:
    return _digits(a) == _digits(b)


def _printed(scores: list[float]) -> str:
    """A column's score as the tables of 0.1.0 print it."""
    deviation = statistics.stdev(scores) if len(scores) > 1 else 0.0
    return f"{_digits(statistics.fmean(scores))} ± {_digits(deviation)}"


def _git(*command: str) -> Any:
    return subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
