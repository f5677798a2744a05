"""Validation scores of presets and of any other settings, to draw up presets by; no test part is ever read.

    python benchmarks/validate_presets.py --data texas,cora --presets near,curved --splits 2 --resplits 2
    python benchmarks/validate_presets.py --data cora --set gcn='{"preset": "none", "model": {"name": "gcn"}}'

Every trial is a line of ``results/search-defaults.jsonl``: settings (a preset's spelt out), data, split, cross-fitted
score. One that is there already is not done again. ``resplit`` 1 and more: the training and validation nodes of that
split dealt anew into parts of the same sizes, for graphs whose validation part is too small to tell by.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hgde.data import Dataset, open_dataset
from hgde.experiments.tables import load_table
from hgde.experiments.work import settings_for, without_test
from hgde.models.base import MODELS
from hgde.pipeline import Reporter, fit, prepare
from hgde.sections import overlay
from hgde.tasks import Part, Problem
from hgde.tasks.baselines import BASELINES
from hgde.training.cross_fitting import cross_fitted
from hgde.training.trainer import Epoch

RECORDS = Path(__file__).parent.parent / "results" / "search-defaults.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="columns of the table of defaults, with commas")
    parser.add_argument("--presets", default="", help="presets of HGDE, or 'all'")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="nested settings under a name")
    parser.add_argument("--over", default="{}", metavar="JSON", help="settings laid over every preset")
    parser.add_argument("--baselines", default="", help="baselines that cost nothing")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--resplits", type=int, default=1, help="times that training and validation nodes are dealt")
    given = parser.parse_args()
    columns = {column.key: column for column in load_table("defaults").data}
    for key in given.data.split(","):
        column = columns[key]
        graph = open_dataset(settings_for(dict(column.settings)).data)
        for name, wanted in _configurations(given, column.task):
            scores, seconds = [], 0.0
            for number, resplit in itertools.product(range(given.splits), range(given.resplits)):
                split = column.splits[number % len(column.splits)]
                settings = overlay(_spelt_out(wanted), overlay(dict(column.settings), {"run": {"threads": 1}}))
                record = _once(Place(key, split, number, resplit), name, settings, graph)
                scores.append(record["score"])
                seconds += record["seconds"]
            shown = " ".join(f"{100 * score:.1f}" for score in scores)
            print(f"{key:22s} {name:28s} {100 * statistics.fmean(scores):6.2f}  [{shown}]  {seconds:.1f} s", flush=True)


def _configurations(given: argparse.Namespace, task: str) -> list[tuple[str, dict[str, Any]]]:
    names = given.presets.split(",") if given.presets else []
    model = MODELS.get("hgde")
    if names == ["all"]:
        names = [name for name in model.presets if name.startswith("links") == (task == "links")]
    over = json.loads(given.over)
    suffix = "" if not over else " " + given.over.replace('"', "").replace(" ", "")
    made = [(name + suffix, overlay({"preset": name}, over)) for name in names]
    made += [(name, {"baseline": name}) for name in given.baselines.split(",") if name]
    return made + [(text.partition("=")[0], json.loads(text.partition("=")[2])) for text in given.set]


@dataclass(frozen=True)
class Place:
    """Data, split and seed of a trial."""

    data: str
    split: int
    seed: int
    resplit: int


def _spelt_out(wanted: dict[str, Any]) -> dict[str, Any]:
    """The settings with those of their preset below: a name means something else once presets have changed."""
    preset = MODELS.get("hgde").presets.get(wanted.get("preset", ""))
    if preset is None:
        return dict(wanted)
    below = {"model": {"name": "hgde", **preset["model"]}, **{k: v for k, v in preset.items() if k != "model"}}
    return overlay(below, {**wanted, "preset": "none"})


def _dealt_anew(problem: Problem, resplit: int) -> Problem:
    """No test part; training and validation nodes shuffled into parts of the same sizes, unless ``resplit`` is 0."""
    problem = without_test(problem)
    if resplit == 0:
        return problem
    parts = problem.parts["train"], problem.parts["val"]
    items, truth = torch.cat([part.items for part in parts]), torch.cat([part.truth for part in parts])
    order = torch.randperm(len(items), generator=torch.Generator().manual_seed(1000 + resplit))
    first, second = order[: parts[0].size].sort().values, order[parts[0].size :].sort().values
    dealt = {"train": Part(items[first], truth[first]), "val": Part(items[second], truth[second])}
    return replace(problem, parts={**problem.parts, **dealt})


class _Predictions(Reporter):
    """Keeps what is predicted for the validation part."""

    def __init__(self) -> None:
        self.epochs: list[Tensor] = []

    def epoch_done(self, epoch: Epoch) -> None:
        self.epochs.append(epoch.predictions)


def _once(place: Place, name: str, settings: dict[str, Any], graph: Dataset) -> dict[str, Any]:
    identity = {**asdict(place), "settings": settings}
    known = _known(identity)
    if known is not None and not name.startswith("!"):
        return known
    began = time.perf_counter()
    chosen = settings_for({k: v for k, v in settings.items() if k != "baseline"})
    chosen = chosen.replace({"data.split": place.split, "run.seed": place.seed})
    posed = _dealt_anew(prepare(chosen, graph).problem, place.resplit)
    task, truth = posed.task, posed.parts["val"].truth
    if "baseline" in settings:
        predictions = BASELINES.get(settings["baseline"])(posed)["val"]
        found: dict[str, Any] = {"score": task.metric.gain(task.scores(predictions, truth)[task.metric.name])}
    else:
        seen = _Predictions()
        fit(chosen, dataset=graph, problem=posed, reporter=seen)
        found = {"score": cross_fitted(task, seen.epochs, truth, chosen.training.keep), "epochs": len(seen.epochs)}
    record = {"name": name, **identity, **found, "seconds": round(time.perf_counter() - began, 2)}
    RECORDS.parent.mkdir(exist_ok=True)
    with RECORDS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    return record


def _known(identity: dict[str, Any]) -> dict[str, Any] | None:
    if not RECORDS.exists():
        return None
    records = (json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines())
    return next((one for one in records if all(one[key] == value for key, value in identity.items())), None)


if __name__ == "__main__":
    main()
