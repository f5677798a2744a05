"""A comparison from files to table, picture and sentence; honest, resumable, in a table of 80 columns."""

import csv
import io
import json
from dataclasses import replace

import pytest
from experiment_graphs import write_blocks
from rich.console import Console

from hgde.experiments.compare import CompareError, Request, compare, share_out
from hgde.experiments.compare_report import cells, fact_lines, markdown, terminal, write_comparison
from hgde.experiments.following import Follower
from hgde.experiments.jobs import Job
from hgde.experiments.places import choose_places
from hgde.experiments.store import Store
from hgde.experiments.systems import USUAL, UnknownSystem, find_system, preset_of, settings_of
from hgde.experiments.work import do
from hgde.models.base import MODELS
from hgde.pipeline.settings import make_settings
from hgde.sections import overlay

SHORT = {"training": {"epochs": 15}}


def request(given, *systems, **changes):
    return Request(overlay(given, SHORT), systems, **{"trials": 1, "workers": 0, "seeds": 2, **changes})


def test_from_files_to_a_table_and_a_sentence(tmp_path):
    given = write_blocks(tmp_path / "graph")
    found = compare(request(given, "gcn", "mlp", "label-propagation", "majority", trials=2), tmp_path / "out")
    assert {row.name for row in found.rows} == {"gcn", "mlp", "label-propagation", "majority"}
    assert all(len(row.scores) == 2 for row in found.rows)
    assert found.rows[0].gain >= found.rows[-1].gain
    assert found.advice.endswith(".")
    files = write_comparison(found, tmp_path / "out")
    assert all(file.stat().st_size > 100 for file in files)
    stored = json.loads((tmp_path / "out" / "table.json").read_text())
    assert stored["facts"]["nodes"] == 90
    assert [row["system"] for row in stored["rows"]] == [row.name for row in found.rows]
    lines = list(csv.DictReader(io.StringIO((tmp_path / "out" / "table.csv").read_text())))
    assert float(lines[0]["mean"]) == pytest.approx(found.rows[0].spread.mean)
    assert found.advice in markdown(found)
    assert fact_lines(found.facts)[0].startswith("edges: 90 nodes")


def test_the_table_fits_80_columns(tmp_path):
    given = write_blocks(tmp_path / "graph")
    found = compare(request(given, "gcn", "logistic-regression", "label-propagation"), tmp_path / "out")
    for row in found.rows:
        row.parameters, row.epoch_ms, row.peak_mib = 123_456_789, 12345.6, 12345.0
    console = Console(width=80, file=io.StringIO())
    console.print(terminal(found))
    shown = console.file.getvalue()
    assert "…" not in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "logistic-regression" in shown


def test_a_comparison_gone_on_with_trains_nothing_twice(tmp_path):
    given = write_blocks(tmp_path / "graph")
    trained = []

    class Ear(Follower):
        def stage(self, words, total, minutes=None):
            return lambda done, *_: trained.append(done.job.cell)

    compare(request(given, "gcn", "mlp"), tmp_path / "out", Ear())
    assert {"gcn", "mlp"} <= set(trained)
    trained.clear()
    again = compare(request(given, "gcn", "mlp", "majority"), tmp_path / "out", Ear())
    assert set(trained) == {"majority"}
    assert len(again.rows) == 3


def test_another_comparison_in_the_same_folder_is_refused(tmp_path):
    compare(request(write_blocks(tmp_path / "graph"), "majority"), tmp_path / "out")
    with pytest.raises(CompareError, match="another folder"):
        compare(request(write_blocks(tmp_path / "other"), "majority"), tmp_path / "out")


def test_failures_are_said_as_failures(tmp_path):
    given = overlay(write_blocks(tmp_path / "graph"), {"training": {"lr": 1e30}})
    found = compare(request(given, "hgde", "majority"), tmp_path / "out")
    failed = found.rows[-1]
    assert failed.name == "hgde"
    assert not failed.scores
    assert failed.failures
    assert "hgde failed: " in markdown(found)
    assert cells(failed)[1] == "failed"
    assert cells(replace(failed, failures=[]))[1] == "not run"  # for want of time


def test_minutes_are_kept(tmp_path):
    given = write_blocks(tmp_path / "graph")
    found = compare(request(given, "gcn", "mlp", trials=50, minutes=0.2, workers=0), tmp_path / "out")
    assert found.seconds < 30
    assert all(row.scores for row in found.rows)


def test_unknown_systems_are_named():
    with pytest.raises(UnknownSystem, match="no system called 'gnc'"):
        find_system("gnc")


@pytest.mark.parametrize("task", USUAL)
def test_usual_systems_exist(task):
    assert [find_system(name).name for name in USUAL[task]] == list(USUAL[task])


def test_the_flat_twin_is_the_same_model_in_flat_space():
    given = {"data": {"name": "cora"}}
    curved = make_settings(settings_of(find_system("hgde"), given, "cora", "nodes")).to_dict()
    flat = make_settings(settings_of(find_system("hgde-flat"), given, "cora", "nodes")).to_dict()
    assert flat["model"].pop("space")["name"] == "euclidean"
    assert curved["model"].pop("space")["name"] == "ball"
    assert flat == curved


@pytest.mark.parametrize("model", MODELS.names())
def test_presets_are_settings(model):
    for name in MODELS.get(model).presets:
        data, _, task = name.partition("-")
        made = make_settings(preset_of(model, data, task or "nodes")).to_dict()
        assert made["model"]["name"] == model


def test_five_runs_by_default():
    assert choose_places(None) == [(k, k) for k in range(5)]
    assert choose_places(1) == [(0, k) for k in range(5)]
    assert len(choose_places(10, 10, 5)) == 50
    assert len({seed for _, seed in choose_places(10, 10, 5)}) == 50


HONEST = ["gcn", "hgde", "hgde-flat", "label-propagation", "logistic-regression", *MODELS.names()]


QUICK = ["gcn", "hgde", "label-propagation"]  # every other is run by `make test-slow`


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in dict.fromkeys(HONEST)]
)
def test_shuffled_test_labels_change_no_choice(tmp_path, name):
    """Test labels permuted among the test nodes: settings chosen, epoch, validation scores and weights stay."""
    records = []
    for shuffled in (False, True):
        given = overlay(write_blocks(tmp_path / str(shuffled), 60, shuffle_test=shuffled), {"training": {"epochs": 6}})
        system = find_system(name)
        settings = overlay(settings_of(system, given, "", "nodes"), {"run": {"threads": 1}})
        settings["training"] = {**settings.get("training", {}), "epochs": 6}
        if system.model is None:
            jobs = [Job("a", "run", "free", settings, {"baseline": name})]
        else:
            jobs = [Job("a", "trial", "trial", settings, {"folds": [[0, 0]]}), Job("a", "run", "train", settings)]
        records.append([do(job) for job in jobs])
    for before, after in zip(*records, strict=True):
        assert before.failure is None
        for kept in ("score", "scores", "epochs", "reached", "best_epoch", "validation", "curvatures"):
            assert before.result.get(kept) == after.result.get(kept), kept


def test_the_test_above_can_fail(tmp_path):
    """The shuffle does change test scores."""
    scores = []
    for shuffled in (False, True):
        given = write_blocks(tmp_path / str(shuffled), shuffle_test=shuffled)
        scores.append(do(Job("a", "run", "free", given, {"baseline": "label-propagation"})).result["test"])
    assert scores[0] != scores[1]


def test_records_name_versions_and_cpu_once_per_file(tmp_path):
    given = write_blocks(tmp_path / "graph")
    compare(request(given, "gcn"), tmp_path / "out")
    content = Store(tmp_path / "out" / "runs").content("gcn")
    (versions,) = content["versions"].values()
    assert {"torch", "numpy", "cpu_capability", "python"} <= set(versions)
    assert all(record["versions"] in content["versions"] for record in content["records"].values())


def test_time_that_some_do_not_need_goes_to_the_others():
    assert share_out(12, {"a": 1.0, "b": 2.0, "c": 50.0}) == {"a": 1.0, "b": 2.0, "c": 9.0}
    assert share_out(9, {"a": 50.0, "b": 50.0, "c": 1.0}) == {"c": 1.0, "a": 4.0, "b": 4.0}
