"""``hgde train`` and what is done with a run: evaluate, predict, embed, energy, resume; moved, changed, locked."""

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import hgde, predictions
from graph_files import QUICK, write_graph

SHORT = [*QUICK, "--epochs", "6", "--preset", "none"]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def run(named, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "nodes"
    output = hgde("train", *named, *SHORT, "--seeds", "2", "--out", folder)
    assert "test accuracy" in output
    assert "±" in output
    return folder


@pytest.fixture(scope="module")
def links(named, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "links"
    hgde("train", *named, *SHORT, "--task", "links", "--dtype", "float64", "--out", folder)
    return folder


def test_settings_and_results_are_kept(run):
    saved = json.loads((run / "settings.json").read_text())["settings"]
    assert saved["model"]["width"] == 3
    assert saved["run"]["seeds"] == 2
    summary = json.loads((run / "summary.json").read_text())
    scores = [outcome["test"]["accuracy"] for outcome in summary["outcomes"]]
    assert summary["mean"] == pytest.approx(np.mean(scores))
    assert summary["std"] == pytest.approx(np.std(scores, ddof=1))


def test_evaluate_repeats_the_score(run):
    output = hgde("evaluate", run)
    outcomes = json.loads((run / "summary.json").read_text())["outcomes"]
    assert f"{outcomes[0]['test']['accuracy']:.4f}" in output
    assert f"{outcomes[1]['test']['log_loss']:.4f}" in hgde("evaluate", run, "--seed", "1")


def test_predictions_are_plain_csv_with_truth_and_part(run, named, tmp_path):
    table = predictions(run, tmp_path / "predictions.csv")
    classes = ["p_ill", "p_well"]
    assert list(table.columns) == ["id", "prediction", "confidence", *classes, "truth", "part"]
    assert table.shape == (90, 7)
    nodes = pd.read_csv(named[3]).set_index("id")
    assert (nodes.loc[table["id"], "label"].to_numpy() == table["truth"]).all()
    assert set(table["part"]) == {"train", "val", "test"}
    np.testing.assert_allclose(table[classes].sum(axis=1), 1)
    np.testing.assert_allclose(table[classes].max(axis=1), table["confidence"])
    about = json.loads((tmp_path / "predictions.json").read_text())
    assert about["is_training_data"]
    assert about["settings"]["model"]["width"] == 3
    assert set(about) >= {"run", "data", "data_hash", "versions"}


@pytest.mark.parametrize("suffix", [".tsv", ".parquet", ".npz"])
def test_other_formats_hold_the_same(suffix, run, tmp_path):
    expected = predictions(run, tmp_path / "p.csv")
    hgde("predict", run, "--out", tmp_path / f"p{suffix}")
    if suffix == ".npz":
        table = pd.DataFrame(dict(np.load(tmp_path / "p.npz")))
    else:
        read = pd.read_parquet if suffix == ".parquet" else pd.read_table
        table = read(tmp_path / f"p{suffix}")
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_predict_on_another_graph(run, tmp_path):
    other = write_graph(tmp_path, num_nodes=40)
    table = predictions(run, tmp_path / "p.csv", *other)
    assert len(table) == 40
    assert "truth" not in table
    assert not json.loads((tmp_path / "p.json").read_text())["is_training_data"]


def test_links_are_predicted_for_pairs(links, tmp_path):
    held = predictions(links, tmp_path / "held.csv")
    assert list(held.columns) == ["source", "target", "probability", "truth", "part"]
    assert set(held["part"]) == {"val", "test"}
    (tmp_path / "pairs.csv").write_text("source,target\np0,p1\np5,p80\n")
    table = predictions(links, tmp_path / "p.csv", "--pairs", tmp_path / "pairs.csv")
    assert list(table["source"]) == ["p0", "p5"]
    assert table["probability"].between(0, 1).all()
    (tmp_path / "pairs.csv").write_text("source,target\np0,nobody\n")
    output = hgde("predict", links, "--pairs", tmp_path / "pairs.csv", code=2)
    assert "line 2, column target: no node is called 'nobody'" in output
    assert "roc_auc" in hgde("evaluate", links)


def test_pairs_are_refused_for_nodes(run, tmp_path):
    (tmp_path / "pairs.csv").write_text("source,target\np0,p1\n")
    assert "pairs are for a run on links" in hgde("predict", run, "--pairs", tmp_path / "pairs.csv", code=2)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_embed_says_where_the_points_lie(suffix, run, tmp_path):
    path = tmp_path / f"z{suffix}"
    assert "wrote 90 points of 3 coordinates (PoincareBall)" in hgde("embed", run, "--out", path)
    about = json.loads((tmp_path / "z.json").read_text())
    curvature = about["curvatures"]["diffusion"]
    if suffix == ".npz":
        columns = dict(np.load(path))
    else:
        columns = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    assert next(iter(columns["id"])) == "p0"
    points = np.stack([np.asarray(columns[f"z{k}"]) for k in range(3)], axis=1)
    assert (np.sqrt(curvature) * np.linalg.norm(points, axis=1) < 1).all()


def test_embed_draws(run, tmp_path):
    hgde("embed", run, "--out", tmp_path / "z.npz", "--plot", tmp_path / "z.png")
    assert (tmp_path / "z.png").stat().st_size > 1000


def test_energy(run, tmp_path):
    assert "Dirichlet energy" in hgde("energy", run, "--plot", tmp_path / "e.png")
    assert (tmp_path / "e.png").exists()


def test_info(named):
    output = hgde("info", *named)
    assert "90" in output
    assert "homophily" in output


def test_a_file_of_settings_gives_way_to_the_command_line(named, tmp_path):
    (tmp_path / "s.toml").write_text(
        '[model]\nwidth = 5\ntime = 1.0\n[model.solver]\nname = "rk4"\nstep = 0.5\n[training]\nepochs = 2\n'
    )
    given = ["--settings", tmp_path / "s.toml", "--width", "2", "--set", "training.lr=0.02"]
    hgde("train", *named, *given, "--out", tmp_path / "run")
    saved = json.loads((tmp_path / "run" / "settings.json").read_text())["settings"]
    assert (saved["model"]["width"], saved["model"]["solver"]) == (2, {"name": "rk4", "step": 0.5})
    assert saved["training"]["epochs"] == 2
    assert saved["training"]["lr"] == 0.02


class TestElsewhere:
    @pytest.fixture
    def moved(self, tmp_path, monkeypatch):
        """A run that was carried to another folder, its inputs gone."""
        source = tmp_path / "source"
        source.mkdir()
        named = write_graph(source)
        hgde("train", *named, *SHORT, "--out", source / "run")
        before = predictions(source / "run", source / "p.csv")
        (tmp_path / "there").mkdir()
        shutil.move(source / "run", tmp_path / "there" / "carried")
        shutil.rmtree(source)
        monkeypatch.chdir(tmp_path / "there")
        return before

    def test_it_works_without_its_inputs(self, moved):
        pd.testing.assert_frame_equal(predictions("carried", "p.csv"), moved)
        assert "accuracy" in hgde("evaluate", "carried")
        assert "wrote 90 points" in hgde("embed", "carried")
        assert "Dirichlet" in hgde("energy", "carried")
        hgde("train", "--resume", "carried", "--epochs", "8")
        assert json.loads(Path("carried/summary.json").read_text())["outcomes"][0]["epochs"] == 8


class TestChanged:
    @pytest.fixture
    def changed(self, tmp_path):
        named = write_graph(tmp_path)
        hgde("train", *named, *SHORT, "--out", tmp_path / "run")
        nodes = tmp_path / "nodes.csv"
        nodes.write_text(nodes.read_text().replace("ill", "well", 1))
        return tmp_path / "run"

    def test_resume_refuses(self, changed):
        assert "has changed since it was started" in hgde("train", "--resume", changed, code=2)

    @pytest.mark.parametrize("command", ["evaluate", "predict", "embed", "energy"])
    def test_use_warns(self, command, changed, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        output = hgde(command, changed)
        assert "warning: the data of this run" in output
        assert "the run's own copy" in output


@contextmanager
def held_by_another_process(lock):
    """The lock of a run, taken by a process that imports no more than it needs."""
    script = "import sys, filelock\nwith filelock.FileLock(sys.argv[1]): print('held', flush=True), sys.stdin.read()"
    command = [sys.executable, "-c", script, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate(timeout=60)  # it ends with its input


class TestResume:
    @pytest.fixture
    def own(self, run, tmp_path):
        return shutil.copytree(run, tmp_path / "run")

    def test_the_folder_alone_is_enough(self, own):
        before = (own / "seed-0" / "model.safetensors").read_bytes()
        hgde("train", "--resume", own)
        assert (own / "seed-0" / "model.safetensors").read_bytes() == before

    def test_epochs_and_seeds_can_be_raised(self, own):
        hgde("train", "--resume", own, "--epochs", "9", "--seeds", "3")
        outcomes = json.loads((own / "summary.json").read_text())["outcomes"]
        assert [outcome["epochs"] for outcome in outcomes] == [9, 9, 9]

    @pytest.mark.parametrize(
        ("words", "setting"),
        [
            (["--width", "4"], "model.width"),
            (["--set", "training.lr=0.1"], "training.lr"),
            (["--set", "model=gcn"], "model.name"),
            (["--out", "elsewhere"], "--out"),
            (["--data", "cora"], "data.name"),
        ],
    )
    def test_other_settings_are_refused(self, words, setting, own):
        assert f"leave out {setting}" in hgde("train", "--resume", own, *words, code=2)

    def test_fewer_epochs_are_refused(self, own):
        assert "epochs can only be raised" in hgde("train", "--resume", own, "--epochs", "2", code=2)

    def test_a_process_at_work_keeps_others_out(self, own):
        with held_by_another_process(own / ".lock"):
            assert "another process is working on" in hgde("train", "--resume", own, code=2)
        hgde("train", "--resume", own)


@pytest.mark.parametrize("model", ["gcn", "mlp", "hnn", "label-propagation"])
def test_baselines_are_saved_loaded_and_used_alike(model, named, tmp_path):
    folder = tmp_path / model
    epochs = [] if model == "label-propagation" else ["--epochs", "3"]
    hgde("train", *named, "--model", model, *epochs, "--threads", "1", "--out", folder)
    table = predictions(folder, tmp_path / "p.csv")
    assert table.shape == (90, 7)
    assert "accuracy" in hgde("evaluate", folder)
    assert "wrote 90 points" in hgde("embed", folder, "--out", tmp_path / "z.npz")
    hgde("train", "--resume", folder)
    pd.testing.assert_frame_equal(predictions(folder, tmp_path / "q.csv"), table)
    assert "only diffusion has an energy" in hgde("energy", folder, code=2)
