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
from hgde.experiments.store import Store
from hgde.experiments.systems import find_system, settings_of
from hgde.experiments.table import Comparison, make_rows

SYSTEMS = ("hgde", "hgde-flat", "gcn", "mlp", "label-propagation")
SETS = {
    "epidemic": {"name": "disease-sim"},
    "taxonomy": {"name": "taxonomy-sim"},
}
SEEDS = 3
# A demonstration has a minute: fewer epochs than a run of one's own would have, the same for all.
SHORT: Mapping[str, Any] = {"training": {"epochs": 150, "patience": 40}, "run": {"threads": 1}}

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
    with Crew(workers) as crew:
        for title, data in sets.items():
            jobs = [Job(f"{title}-facts", "facts", "facts", {"data": dict(data)})]
            for system in systems:
                settings = settings_of(system, {"data": dict(data), **given}, "", "nodes")
                for place in places:
                    work = ("free", {"baseline": system.name}) if system.model is None else ("train", {})
                    jobs.append(
                        Job(f"{title}/{system.name}", key_of(place), work[0], at_place(settings, place), work[1])
                    )
            say(f"{title}: {len(jobs) - 1} runs of {len(systems)} systems")
            facts, *outcomes = run_jobs(jobs, store, crew)
            rows = make_rows(systems, outcomes, seeds, {})
            spent = time.monotonic() - began
            demo.comparisons[title] = Comparison.of(rows, facts.result or {}, facts.failure, 1, spent, [])
            demo.files += write_comparison(demo.comparisons[title], out / title)
    first, data = next(iter(sets.items()))
    settings = at_place(settings_of(systems[0], {"data": dict(data), **given}, "", "nodes"), places[0])
    demo.files += (report or run_page)(out / f"{first}-hgde", out, settings)
    demo.seconds = time.monotonic() - began
    return demo
