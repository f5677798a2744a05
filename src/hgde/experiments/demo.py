"""The main job, small: a simulated epidemic and a taxonomy made on the spot, HGDE beside simpler models."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hgde.experiments.compare_report import write_comparison
from hgde.experiments.jobs import Crew, Job, run_jobs
from hgde.experiments.pages import run_page
from hgde.experiments.places import at_place, key_of
from hgde.experiments.stats import Place
from hgde.experiments.store import Store
from hgde.experiments.systems import System, find_system, settings_of
from hgde.experiments.table import Comparison, make_rows

SYSTEMS = ("hgde", "hgde-flat", "gcn", "mlp", "label-propagation")
SETS = {
    "epidemic": {"name": "disease-sim"},
    "taxonomy": {"name": "taxonomy-sim"},
}
SEEDS = 3
# A demonstration has a minute: fewer epochs than a run of one's own would have, the same for all.
SHORT: Mapping[str, Any] = {"training": {"epochs": 100, "patience": 40}, "run": {"threads": 1}}

Say = Callable[[str], None]


@dataclass
class Demo:
    """One comparison per data set, and the files that were written."""

    comparisons: dict[str, Comparison]
    files: list[Path] = field(default_factory=list)
    seconds: float = 0.0


def run_demo(
    out: Path,
    *,
    workers: int = 2,
    seeds: int = SEEDS,
    given: Mapping[str, Any] = SHORT,
    sets: Mapping[str, Mapping[str, Any]] = SETS,
    say: Say | None = None,
    report: Callable[[Path, Path, Mapping[str, Any]], list[Path]] | None = None,
) -> Demo:
    """Train everything with default settings, keep tables and pictures in ``out``.

    ``report(run folder, out, settings)`` adds files about one trained HGDE; by default the page of its run.
    """
    say = say or (lambda _: None)
    began = time.monotonic()
    systems = [find_system(name) for name in SYSTEMS]
    store = Store(out / "runs")
    demo = Demo({})
    places = [(seed, seed) for seed in range(seeds)]
    shown: dict[str, Any] = {}
    with Crew(workers) as crew:
        for title, data in sets.items():
            say(f"{title}: {len(systems)} systems, {seeds} seeds")
            (facts,) = run_jobs([Job(f"{title}-facts", "facts", "facts", {"data": dict(data)})], store, crew)
            settings = {s.name: settings_of(s, {"data": dict(data), **given}, "", "nodes") for s in systems}
            # One run chooses among the presets; all others of HGDE and its twin take what it chose, to save time.
            (choosing,) = run_jobs([_job(title, systems[0], settings["hgde"], places[0])], store, crew)
            chosen = "default" if choosing.result is None else choosing.result["preset"]
            for own in settings.values():
                if own.get("preset") == "auto":
                    own["preset"] = chosen
            rest = [_job(title, s, settings[s.name], place) for s in systems for place in places]
            outcomes = [choosing, *run_jobs(rest[1:], store, crew)]
            shown = shown or settings["hgde"]
            rows = make_rows(systems, outcomes, seeds, {})
            spent = time.monotonic() - began
            demo.comparisons[title] = Comparison.of(rows, facts.result or {}, facts.failure, 1, spent, [])
            demo.files += write_comparison(demo.comparisons[title], out / title)
    demo.files += (report or run_page)(out / "run", out, at_place(shown, places[0]))
    demo.seconds = time.monotonic() - began
    return demo


def _job(title: str, system: System, settings: dict[str, Any], place: Place) -> Job:
    work, more = ("free", {"baseline": system.name}) if system.model is None else ("train", {})
    return Job(f"{title}/{system.name}", key_of(place), work, at_place(settings, place), more)
