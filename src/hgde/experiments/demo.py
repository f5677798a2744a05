"""The main job, small: a simulated epidemic and a taxonomy made on the spot, HGDE beside simpler models, one page."""

from __future__ import annotations

import gc
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from hgde.compiler.haste import in_haste
from hgde.experiments.demo_data import make_taxonomy
from hgde.experiments.demo_kernels import begin_to_compile
from hgde.experiments.jobs import Crew, Done, Job, first_come, run_jobs
from hgde.experiments.places import at_place, key_of
from hgde.experiments.stats import Place
from hgde.experiments.store import Store
from hgde.experiments.systems import System, find_system, settings_of
from hgde.experiments.table import Comparison, make_rows
from hgde.experiments.work import WORK
from hgde.registry import REGISTRIES

SYSTEMS = ("hgde", "hgde-flat", "gcn", "mlp", "label-propagation")
SEEDS = 3
EPOCHS = 60
MODEL: Mapping[str, Any] = {
    "width": 32, "time": 2.0, "space": {"name": "ball", "curvature": 0.1}, "eta": [1.0, 0.0, 0.1],
    "encoder_layers": 2, "encoder_activation": "relu", "dropout": 0.0, "state_dropout": 0.2,
}  # fmt: skip
"""HGDE's settings for both sets, and the flat twin's: a demonstration has no time to choose among presets."""
PICTURE: Mapping[str, Any] = {
    "model": {"name": "hgde", "width": 2, "time": 2.0, "space": {"name": "ball", "curvature": 1.0},
              "eta": [1.0, 0.6, 0.6], "dropout": 0.0},
    "training": {"epochs": 100, "patience": 100, "lr": 0.02, "weight_decay": 1e-4},
    "preprocessing": {"normalise": "none"},
    "preset": "none",
}  # fmt: skip
"""A model of two dimensions, to be looked at. The inputs are left as they are: what has no attribute starts at the
origin, and every attribute that an entry inherits or adds leads further out."""

OnRun = Callable[[Done], None]


@dataclass
class Demo:
    """One comparison per data set, the page that was written, and other files."""

    comparisons: dict[str, Comparison]
    page: Path
    files: list[Path] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "page": str(self.page),
            "files": [str(file) for file in self.files],
            "seconds": self.seconds,
            "comparisons": {title: comparison.to_dict() for title, comparison in self.comparisons.items()},
        }


def load_libraries() -> None:
    """What runs would load when they first need it: processes that are forked afterwards have it, too."""
    for name in ("geoopt", "pandas", "scipy.sparse.csgraph"):
        import_module(name)
    for registry in list(REGISTRIES.values()):
        registry.names()


def count_runs(seeds: int = SEEDS) -> int:
    """How many runs :func:`run_demo` reports, the picture's included."""
    return 2 * len(SYSTEMS) * seeds + 1


def run_demo(
    out: Path, *, crew: Crew | None = None, seeds: int = SEEDS, epochs: int = EPOCHS, size: int = 400,
    on_run: OnRun | None = None,
) -> Demo:  # fmt: skip
    """Train everything; tables, tables of data, runs and page in ``out``.

    Args:
        crew: processes to work beside this one.
        epochs: of every run, the same for all systems.
        size: nodes of the taxonomy; the epidemic has a quarter more.
        on_run: hears of every run as it ends, from several threads.
    """
    began = time.monotonic()
    store = Store(out / "runs")
    edges, nodes = make_taxonomy(size).write(out / "taxonomy")
    tables = {"edges": str(edges), "nodes": str(nodes)}
    sets: dict[str, dict[str, Any]] = {
        "epidemic": {"data": {"name": "disease-sim", "options": [f"num_nodes={size + size // 4}"]}},
        "taxonomy": {"data": tables, "task": {"name": "nodes", "labels_per_class": 4}},
    }
    systems = [find_system(name) for name in SYSTEMS]
    places: list[Place] = [(seed, seed) for seed in range(seeds)]
    jobs = {title: _jobs(title, given, systems, places, epochs) for title, given in sets.items()}
    picture = {"data": tables, "run": {"threads": 1}, **PICTURE}
    begin_to_compile()
    every = sorted((job for own in jobs.values() for job in own), key=_is_fused)
    claim = first_come()

    def tell(done: Done, count: int, total: int) -> None:
        if on_run is not None and not done.job.cell.endswith("facts"):
            on_run(done)

    def do_mine() -> Path:
        page = _write_page(out, picture)
        if on_run is not None:
            on_run(Done(Job("picture", "seed-00", "train", picture), {}))
        run_jobs(reversed(every), store, 0, tell, claim=claim)
        return page

    page = _beside(lambda: run_jobs(every, store, crew or 0, tell, claim=claim), do_mine, crew)
    from hgde.experiments.compare_report import write_comparison

    demo = Demo({}, page)
    for title, own in jobs.items():
        facts, *outcomes = run_jobs(own, store, 0)
        rows = make_rows(systems, outcomes, seeds, {})
        spent = time.monotonic() - began
        demo.comparisons[title] = Comparison.of(rows, facts.result or {}, facts.failure, 1, spent, [])
        demo.files += write_comparison(
            demo.comparisons[title], out / title, [f"hgde demo --out {shlex.quote(str(out))}"]
        )
    demo.files += [edges, nodes, out / "run"]
    demo.seconds = time.monotonic() - began
    return demo


def _jobs(
    title: str, given: Mapping[str, Any], systems: Sequence[System], places: Sequence[Place], epochs: int
) -> list[Job]:
    """What the graph says, then every system at every place."""
    given = {**given, "training": {"epochs": epochs, "patience": epochs, "lr": 0.02}, "run": {"threads": 1}}
    jobs = [Job(f"{title}-facts", "facts", f"{__name__}:run", dict(given), {"work": "facts"})]
    for system in systems:
        settings = settings_of(system, given, "", "nodes")
        if system.model == "hgde":
            settings |= {"preset": "none", "model": {**MODEL, **settings["model"]}}
        more = {"work": "train"} if system.model is not None else {"work": "free", "baseline": system.name}
        for place in places:
            jobs.append(
                Job(f"{title}/{system.name}", key_of(place), f"{__name__}:run", at_place(settings, place), more)
            )
    return jobs


def _is_fused(job: Job) -> bool:
    """Whether it needs kernels: others come first, and by then these are compiled, once for all processes."""
    return "/hgde" in job.cell or job.more["work"] == "facts"


def run(job: Job) -> dict[str, Any]:
    """The work ``job.more["work"]``. Memory is measured after a collection of garbage, which would look at everything
    that was ever imported; what is there before a run is left out of it."""
    gc.freeze()
    with in_haste():
        return WORK[job.more["work"]](job)


def _beside(theirs: Callable[[], Any], mine: Callable[[], Path], crew: Crew | None) -> Path:
    """What others do and what this process does, at the same time if there are others; the latter's result."""
    if crew is None or crew.count == 0:
        theirs()
        return mine()
    with ThreadPoolExecutor(1) as thread:
        others = thread.submit(theirs)
        made = mine()
        others.result()
    return made


def _write_page(out: Path, settings: Mapping[str, Any]) -> Path:
    """Train the model of two dimensions, where it is not there yet, and write its page."""
    from hgde.pipeline import fit, make_settings
    from hgde.report.from_run import report_of_run
    from hgde.report.page import write_report

    run = out / "run"
    with in_haste():
        if not (run / "summary.json").exists():
            fit(make_settings(settings), run)
        report = report_of_run(run)
    return write_report(report, out, forms=("html",)).html
