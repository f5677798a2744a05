"""Settings for the user's own data: a search, the file of settings it ends in, and what mattered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hgde.experiments.following import Follower
from hgde.experiments.jobs import Crew
from hgde.experiments.places import choose_places, open_for
from hgde.experiments.search import Found, Search, SearchError, search_all
from hgde.experiments.space import check_space, exists, read_space, space_for
from hgde.experiments.store import Store
from hgde.experiments.systems import preset_name, preset_of
from hgde.experiments.toml import to_toml
from hgde.files import write_atomically
from hgde.pipeline import versions
from hgde.pipeline.settings import make_settings
from hgde.report.from_tuning import report_of_tuning
from hgde.report.page import write_report
from hgde.sections import nested, overlay

FOREVER = 10_000
"""Trials of a search that only its minutes end."""


@dataclass(frozen=True)
class Tuned:
    """What a search on someone's data gave, and the files it is in."""

    found: Found
    metric: str
    files: list[Path]

    @property
    def gain(self) -> float | None:
        """How far the best trial is ahead of the start, on the validation part."""
        start = self.found.trials[0].score if self.found.trials else None
        best = self.found.best
        return None if start is None or best is None or best.score is None else best.score - start


def tune(
    given: Mapping[str, Any],
    out: Path,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    folds: int = 2,
    workers: int | Crew = 2,
    space: Path | None = None,
    seed: int = 0,
    follower: Follower | None = None,
    reproduce: Sequence[str] = (),
) -> Tuned:
    """Search for settings by the cross-fitted validation score; the same call goes on where it was stopped.

    Args:
        given: nested settings someone gave; what they fix is not searched.
        out: folder for ``settings.toml``, ``what-mattered.md`` and ``trials.json``.
        trials, minutes: when to stop; at least one of them.
        folds: splits (or seeds, where there is one split) that a trial is the mean of.
        space: a file of one's own instead of the model's in ``spaces/``.
        follower: hears of every trial.
        reproduce: commands that make it again, for the page.
    """
    if trials is None and minutes is None:
        raise SearchError("say how long to search: --trials or --minutes")
    settings = make_settings(given)
    model = settings.model.name
    data = settings.data.name if settings.data.edges is None else ""
    base = overlay(preset_of(model, data, settings.task.name), given)
    base = {**base, "run": {**base.get("run", {}), "threads": 1}}
    dimensions = list(space_for(model))
    if space is not None:
        dimensions = read_space(space)
        check_space(dimensions, model)
    free = tuple(dimension for dimension in dimensions if not exists(given, dimension.path))
    if not free:
        raise SearchError("every setting of the search space was given; leave some out, or name another --search-space")
    _, at_hand = open_for(settings)
    first = settings.data.split
    places = choose_places(at_hand, folds if at_hand is None or at_hand > 1 else None, None if at_hand != 1 else folds)
    shifted = tuple((first + split if at_hand is None else split, place) for split, place in places[:folds])
    search = Search("trials", base, free, trials or FOREVER, shifted, seed)
    store = Store(out)
    heard = (follower or Follower()).stage("trials", trials, minutes)
    found = search_all([search], store, workers, heard, minutes)["trials"]
    if found.best is None:
        raise SearchError(f"no trial was finished: {found.failure}")
    metric = settings.task.entry.default_metric
    start = preset_name(model, data, settings.task.name)
    files = _write(out, found, given, settings.to_dict(), start, metric, reproduce)
    return Tuned(found, metric, [*files, store.path("trials")])


def _write(
    out: Path,
    found: Found,
    given: Mapping[str, Any],
    resolved: Mapping[str, Any],
    start: str,
    metric: str,
    reproduce: Sequence[str],
) -> list[Path]:
    best = found.best
    assert best is not None
    assert best.score is not None
    # A preset by its name, not spelt out: what cannot act in it is then nobody's wish.
    preset = start if best.settings.get("preset") != "none" or start != "auto" else "none"
    chosen = overlay({"preset": preset}, overlay(given, nested(best.changes)))
    chosen.pop("run", None)
    comment = (
        f"Best of {len(found.trials)} trials (number {best.number}): cross-fitted {metric} {best.score:.4f}.\n"
        "Use it: hgde train --settings settings.toml"
    )
    settings, report = out / "settings.toml", out / "what-mattered.md"
    write_atomically(settings, to_toml(chosen, comment).encode())
    write_atomically(report, what_mattered(found, metric).encode())
    record = {
        "title": f"Settings of {resolved['model']['name']} for {_data_name(resolved)}",
        "metric": metric,
        "trials": [asdict(trial) for trial in found.trials],
        "importances": found.importances,
        "best": best.number,
        "versions": versions(),
    }
    page = write_report(report_of_tuning(record, reproduce), out, forms=("html", "figures"))
    return [settings, report, page.html]


def _data_name(resolved: Mapping[str, Any]) -> str:
    data = resolved["data"]
    return str(data.get("name") or Path(str(data.get("edges"))).stem)


def what_mattered(found: Found, metric: str) -> str:
    """Markdown: importance of every setting, and the ten best trials."""
    best = found.best
    lines = ["# What mattered", ""]
    if found.importances:
        lines += [
            "Share of the variance of the trials' scores that a setting accounts for (functional ANOVA).", "",
            "| setting | importance | best value |", "| --- | ---: | --- |",
        ]  # fmt: skip
        values = best.changes if best is not None else {}
        lines += [
            f"| {name} | {share:.2f} | {json.dumps(values[name]) if name in values else 'as at the start'} |"
            for name, share in found.importances.items()
        ]
    else:
        lines.append("Too few trials, or scores too alike, to tell.")
    ranked = sorted((t for t in found.trials if t.score is not None), key=lambda t: -(t.score or 0))[:10]
    lines += [
        "",
        f"| trial | {metric} (validation, cross-fitted) | seconds | settings |",
        "| ---: | ---: | ---: | --- |",
    ]
    for trial in ranked:
        changed = ", ".join(f"{name}={json.dumps(value)}" for name, value in trial.changes.items()) or "the start"
        stopped = " (given up)" if trial.stopped else ""
        lines.append(f"| {trial.number} | {trial.score:.4f}{stopped} | {trial.seconds:.1f} | {changed} |")
    failed = [trial for trial in found.trials if trial.failure]
    lines += ["", *(f"- trial {trial.number} failed: {trial.failure}" for trial in failed), ""]
    return "\n".join(lines)
