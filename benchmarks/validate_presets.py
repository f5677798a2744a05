"""Validation scores of presets and of any other settings, to draw up presets by; no test part is ever read.

    python benchmarks/validate_presets.py --data texas,cora --presets near,curved --splits 2
    python benchmarks/validate_presets.py --data cora --set gcn='{"preset": "none", "model": {"name": "gcn"}}'

Every trial is a line of ``results/search-defaults.jsonl``: settings, data, split, cross-fitted score. One that is
there already is not done again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from hgde.data import Dataset, open_dataset
from hgde.experiments.jobs import Job
from hgde.experiments.tables import load_table
from hgde.experiments.work import settings_for, trial, without_test
from hgde.models.base import MODELS
from hgde.pipeline import prepare
from hgde.sections import overlay
from hgde.tasks.baselines import BASELINES

RECORDS = Path(__file__).parent.parent / "results" / "search-defaults.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="columns of the table of defaults, with commas")
    parser.add_argument("--presets", default="", help="presets of HGDE, or 'all'")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="nested settings under a name")
    parser.add_argument("--over", default="{}", metavar="JSON", help="settings laid over every preset")
    parser.add_argument("--baselines", default="", help="baselines that cost nothing")
    parser.add_argument("--splits", type=int, default=1)
    given = parser.parse_args()
    columns = {column.key: column for column in load_table("defaults").data}
    for key in given.data.split(","):
        column = columns[key]
        graph = open_dataset(settings_for(dict(column.settings)).data)
        for name, wanted in _configurations(given, column.task):
            scores, seconds = [], 0.0
            for number in range(given.splits):
                split = column.splits[number % len(column.splits)]
                settings = overlay(dict(wanted), overlay(dict(column.settings), {"run": {"threads": 1}}))
                record = _once(key, name, settings, split, number, graph)
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


def _once(key: str, name: str, settings: dict[str, Any], split: int, seed: int, graph: Dataset) -> dict[str, Any]:
    identity = {"data": key, "settings": settings, "split": split, "seed": seed}
    known = _known(identity)
    if known is not None and not name.startswith("!"):
        return known
    began = time.perf_counter()
    if "baseline" in settings:
        chosen = {k: v for k, v in settings.items() if k != "baseline"}
        posed = prepare(settings_for(chosen).replace({"data.split": split}), graph).problem
        predictions = BASELINES.get(settings["baseline"])(without_test(posed))
        task = posed.task
        score = task.metric.gain(task.scores(predictions["val"], posed.parts["val"].truth)[task.metric.name])
        found: dict[str, Any] = {"score": score}
    else:
        tried = trial(Job("", "", "trial", settings, {"folds": [(split, seed)]}))
        found = {"score": tried["score"], "epochs": tried["epochs"][0]}
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
