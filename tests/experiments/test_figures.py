"""Figures from stored records alone."""

import math

import numpy as np

from hgde.experiments import figures
from hgde.experiments.curvature import Gain, draw_gains, in_short
from hgde.experiments.figure_work import DIFFUSIVITIES, INTEGRATORS
from hgde.experiments.figures import diffusivity_jobs, disk_jobs, draw_stored, energy_jobs
from hgde.experiments.jobs import Done
from hgde.experiments.stats import t_test
from hgde.experiments.store import Store
from hgde.pipeline.settings import make_settings


def fill(store, jobs, make):
    for job in jobs:
        store.add(Done(job, make(job)))


def test_three_figures_as_png_and_svg(tmp_path):
    store, random = Store(tmp_path), np.random.default_rng(0)
    times = list(range(9))
    fill(store, energy_jobs(), lambda job: {"times": times, "energy": list(np.exp(-np.array(times)))})
    points = random.uniform(-0.6, 0.6, (20, 2)).tolist()
    weights = [[int(a), int(b), 0.5] for a, b in random.integers(0, 20, (30, 2)) if a != b]
    disk = {"points": points, "labels": [0] * 20, "local": weights, "global": weights[:5]}
    fill(store, disk_jobs(), lambda job: disk)
    run = {"metric": "accuracy", "test": {"accuracy": 0.8}}
    fill(store, diffusivity_jobs(lambda _: None)[: 2 * len(DIFFUSIVITIES)], lambda job: run)
    written = draw_stored(tmp_path, tmp_path / "docs")
    assert {path.name for path in written} == {
        f"figure-{name}.{suffix}" for name in ("energy", "diffusivity", "cora-disk") for suffix in ("png", "svg")
    }
    assert all(path.stat().st_size > 1000 for path in written)


def test_what_was_not_run_is_not_drawn(tmp_path):
    assert draw_stored(tmp_path, tmp_path / "docs") == []


def test_one_figure_by_name(tmp_path):
    store = Store(tmp_path)
    curve = {"times": [0, 1], "energy": [1.0, 0.5]}
    fill(store, energy_jobs(), lambda job: curve)
    assert draw_stored(tmp_path, tmp_path / "docs", ["cora-disk"]) == []
    assert [path.name for path in draw_stored(tmp_path, tmp_path / "docs", ["energy"])] == [
        "figure-energy.png",
        "figure-energy.svg",
    ]


def test_all_pairs_are_left_out_of_large_graphs(monkeypatch):
    monkeypatch.setattr(figures, "MOST_ALL_PAIRS", 2000)
    names = {job.cell.rpartition("/")[2] for job in diffusivity_jobs(lambda _: None)}
    assert "cora--linear-global" in names
    assert not {"cora--global", "cora--local-global"} & names
    assert {"texas--global", "texas--local-global"} <= names


def test_settings_of_the_figures_can_be_used():
    jobs = [*energy_jobs(), *disk_jobs()]
    assert len(jobs) == 2 * 2 * len(INTEGRATORS) + 2
    for job in jobs:
        make_settings(job.settings)


def test_gains_are_drawn_and_summed_up(tmp_path):
    sure, unsure = t_test([1.0, 1.1, 0.9, 1.0]), t_test([1.0, -2.0, 3.0])
    made = [
        Gain("a tree", "nodes", 80.0, 78.0, sure, (0.2, 0.3)),
        Gain("another", "links", 80.0, 79.0, unsure, (0.4, 0.3)),
        Gain("a third", "links", 80.0, 79.0, unsure, (math.nan, 0.3)),
    ]
    draw_gains(made, tmp_path / "gains.png")
    assert (tmp_path / "gains.png").stat().st_size > 1000
    assert in_short(made) == (
        "no difference shown on 2 of 3 graphs; curvature pays on 1 of 3 graphs; distances along the graph are kept "
        "better in curved space on 1 of 2."
    )
