"""The commands from the outside, on small data."""

import json

import pytest
from experiment_graphs import write_blocks
from typer.testing import CliRunner

from hgde.cli.main import COMMANDS, app


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def files(tmp_path):
    given = write_blocks(tmp_path / "graph")["data"]
    return ["--edges", given["edges"], "--nodes", given["nodes"]]


@pytest.mark.parametrize("name", ["compare", "tune", "reproduce", "demo"])
def test_help(name):
    assert name in COMMANDS
    shown = run(name, "--help")
    assert shown.exit_code == 0, shown.output


@pytest.mark.slow
def test_compare_writes_and_prints(tmp_path, files):
    done = run(
        "compare", *files, "--models", "mlp,majority", "--trials", 1, "--seeds", 1, "--workers", 1, "--out",
        tmp_path / "out", "--set", "training.epochs=5",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "majority" in done.output
    assert (tmp_path / "out" / "table.png").exists()
    assert "majority" in (tmp_path / "out" / "report.html").read_text()


def test_compare_refuses_settings_of_one_model(tmp_path, files):
    done = run("compare", *files, "--set", "model.width=3", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "--models" in done.output


@pytest.mark.slow
def test_tune_writes_a_file_of_settings(tmp_path, files):
    done = run(
        "tune", *files, "--set", "model.name=gcn", "--trials", 2, "--folds", 1, "--workers", 1, "--epochs", 5, "--out",
        tmp_path / "out",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "report.html").exists()
    trained = run("train", "--settings", tmp_path / "out" / "settings.toml", "--out", tmp_path / "run", "--quiet")
    assert trained.exit_code == 0, trained.output
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["settings"]["model"]["name"] == "gcn"


def test_reproduce_names_the_tables_there_are(tmp_path):
    done = run("reproduce", "node", "--results", tmp_path)
    assert done.exit_code == 2
    assert "few-labels" in done.output


def test_a_check_without_stored_runs_is_no_success(tmp_path):
    assert run("reproduce", "nodes", "--quick", "--results", tmp_path).exit_code == 2
