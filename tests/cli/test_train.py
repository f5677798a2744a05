"""``hgde train`` and what is done with a run: evaluate, predict, embed, energy, info, on a graph with text names."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from graph_files import QUICK, write_graph
from typer.testing import CliRunner

from hgde.cli.main import app

SHORT = [*QUICK, "--epochs", "6"]


def hgde(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    told = result.output + (result.stderr if result.stderr_bytes else "")
    assert result.exit_code == code, f"{told}\n{result.exception!r}"
    return " ".join(told.split())


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def run(named, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "nodes"
    told = hgde("train", *named, *SHORT, "--seeds", "2", "--out", folder)
    assert "test accuracy" in told
    assert "±" in told
    return folder


@pytest.fixture(scope="module")
def links(named, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "links"
    hgde("train", *named, *SHORT, "--task", "links", "--dtype", "float64", "--out", folder)
    return folder


def test_settings_are_saved_beside_the_result(run):
    saved = json.loads((run / "settings.json").read_text())
    assert saved["width"] == 3
    assert saved["seeds"] == 2
    summary = json.loads((run / "summary.json").read_text())
    scores = [outcome["test"]["accuracy"] for outcome in summary["outcomes"]]
    assert summary["mean"] == pytest.approx(np.mean(scores))
    assert summary["std"] == pytest.approx(np.std(scores, ddof=1))


def test_evaluate_repeats_the_score(run):
    told = hgde("evaluate", run)
    score = json.loads((run / "summary.json").read_text())["outcomes"][0]["test"]["accuracy"]
    assert f"{score:.4f}" in told


def test_evaluate_warns_of_changed_data(named, tmp_path):
    own = write_graph(tmp_path)
    hgde("train", *own, *SHORT, "--out", tmp_path / "run")
    nodes = tmp_path / "nodes.csv"
    nodes.write_text(nodes.read_text().replace("ill", "well", 1))
    assert "the data has changed" in hgde("evaluate", tmp_path / "run")


def test_predict_names_nodes_and_classes(run, tmp_path):
    assert "wrote 90 rows" in hgde("predict", run, "--out", tmp_path / "p.csv")
    table = pd.read_csv(tmp_path / "p.csv", comment="#")
    assert list(table.columns) == ["id", "label", "p_ill", "p_well"]
    assert set(table["id"]) == {f"p{k}" for k in range(90)}
    assert set(table["label"]) <= {"ill", "well"}
    np.testing.assert_allclose(table[["p_ill", "p_well"]].sum(axis=1), 1, atol=1e-5)


def test_predict_on_another_graph(run, tmp_path):
    other = write_graph(tmp_path, num_nodes=40)
    assert "wrote 40 rows" in hgde("predict", run, *other, "--out", tmp_path / "p.csv")


def test_another_graph_with_other_columns_is_refused(run, tmp_path):
    other = write_graph(tmp_path, num_nodes=40)
    nodes = pd.read_csv(tmp_path / "nodes.csv").drop(columns=["x3"])
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    assert "features, the model was trained on 16" in hgde("predict", run, *other, code=2)


def test_links_are_predicted_for_pairs(links, tmp_path):
    assert "--pairs" in hgde("predict", links, code=2)
    (tmp_path / "pairs.csv").write_text("source,target\np0,p1\np5,p80\n")
    hgde("predict", links, "--pairs", tmp_path / "pairs.csv", "--out", tmp_path / "p.csv")
    table = pd.read_csv(tmp_path / "p.csv", comment="#")
    assert list(table["source"]) == ["p0", "p5"]
    assert table["probability"].between(0, 1).all()
    (tmp_path / "pairs.csv").write_text("source,target\np0,nobody\n")
    told = hgde("predict", links, "--pairs", tmp_path / "pairs.csv", code=2)
    assert "line 2, column target: no node is called 'nobody'" in told
    assert "roc_auc" in hgde("evaluate", links)


def header_of(path):
    if path.suffix == ".csv":
        return json.loads(path.read_text().splitlines()[0].removeprefix("# "))
    if path.suffix == ".npz":
        return json.loads(str(np.load(path)["header"]))
    return json.loads(pq.read_schema(path).metadata[b"hgde"])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_embed_says_where_the_points_lie(suffix, run, tmp_path):
    path = tmp_path / f"z{suffix}"
    assert "wrote 90 points of the 3-dimensional ball" in hgde("embed", run, "--out", path)
    header = header_of(path)
    assert header["curvature"] < 0
    assert header["model"]["settings"]["width"] == 3
    if suffix == ".npz":
        columns = dict(np.load(path))
    else:
        columns = pd.read_csv(path, comment="#") if suffix == ".csv" else pd.read_parquet(path)
    assert next(iter(columns["id"])) == "p0"
    points = np.stack([np.asarray(columns[f"z{k}"]) for k in range(3)], axis=1)
    assert (np.sqrt(-header["curvature"]) * np.linalg.norm(points, axis=1) < 1).all()


def test_embed_draws(run, tmp_path):
    hgde("embed", run, "--out", tmp_path / "z.npz", "--plot", tmp_path / "z.png")
    assert (tmp_path / "z.png").stat().st_size > 1000


def test_an_unknown_format_is_named(run, tmp_path):
    assert "use .csv, .tsv, .parquet or .npz" in hgde("embed", run, "--out", tmp_path / "z.xlsx", code=2)


def test_energy(run, tmp_path):
    told = hgde("energy", run, "--plot", tmp_path / "e.png")
    assert "Dirichlet energy" in told
    assert (tmp_path / "e.png").exists()


def test_info(named):
    told = hgde("info", *named)
    assert "90" in told
    assert "homophily" in told


def test_a_file_of_settings_gives_way_to_the_command_line(named, tmp_path):
    (tmp_path / "s.toml").write_text('width = 5\nmethod = "rk4"\nepochs = 2\ntime = 1.0\n')
    hgde("train", *named, "--settings", tmp_path / "s.toml", "--width", "2", "--out", tmp_path / "run")
    saved = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert (saved["width"], saved["method"], saved["epochs"]) == (2, "rk4", 2)
    assert saved["lr"] == 0.01


class TestMistakes:
    def test_unknown_key(self, named, tmp_path):
        (tmp_path / "s.toml").write_text("widht = 5\n")
        told = hgde("train", *named, "--settings", tmp_path / "s.toml", "--out", tmp_path / "run", code=2)
        assert "did you mean 'width'" in told
        assert not (tmp_path / "run").exists()

    def test_unknown_option_and_value(self, named):
        assert "--width" in hgde("train", *named, "--widht", "3", code=2)
        assert "did you mean 'hrk4'" in hgde("train", *named, "--method", "hrk5", code=2)

    def test_unknown_data(self):
        assert "cora" in hgde("train", "--data", "coar", code=2)

    def test_a_bad_graph_is_refused_before_training(self, tmp_path):
        named = write_graph(tmp_path)
        with (tmp_path / "edges.csv").open("a") as file:
            file.write("p1,nobody\n")
        told = hgde("train", *named, "--out", tmp_path / "run", code=2)
        assert "nobody" in told
        assert not (tmp_path / "run").exists()

    def test_a_folder_in_use(self, named, run):
        assert "holds a run already" in hgde("train", *named, *SHORT, "--seeds", "2", "--out", run, code=2)
        told = hgde("train", *named, *SHORT, "--width", "4", "--out", run, "--resume", code=2)
        assert "width: 3 then, 4 now" in told

    def test_no_run_there(self, tmp_path):
        assert "train one with" in hgde("evaluate", tmp_path, code=2)
