"""Mistakes end in words and exit code 2, never in a traceback, and leave no folder behind."""

import numpy as np
import pandas as pd
import pytest
from command import hgde
from graph_files import QUICK, write_graph


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def run(named, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    hgde("train", *named, *QUICK, "--epochs", "2", "--preset", "none", "--out", folder)
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--widht 3", "--width"),
        ("--method hrk5", "did you mean 'hrk4'"),
        ("--model gcnn", "did you mean 'gcn'"),
        ("--task node", "did you mean 'nodes'"),
        ("--diffusivity isotropc", "did you mean 'isotropic'"),
        ("--split -1", "split must be at least 0"),
        ("--threads 0", "threads must be greater than 0"),
        ("--epochs 0", "epochs must be greater than 0"),
        ("--epochs many", "--epochs"),
        ("--curvature inf", "curvature must be a finite number"),
        ("--curvature nan", "curvature must be a finite number"),
        ("--curvature -1", "curvature must be"),
        ("--dropout 1", "dropout must be less than 1"),
        ("--lr 0", "lr must be greater than 0"),
        ("--time 0", "time must be greater than 0"),
        ("--seed -3", "seed must be at least 0"),
        ("--seed 9223372036854775808", "seed must be less than"),
        ("--seed 99999999999999999999999999", "seed must be less than"),
        ("--seed 9223372036854775807 --seeds 2", "seed"),
        ("--split 99999999999999999999", "split must be"),
        ("--metric roc", "did you mean 'roc_auc'"),
        ("--metric rmse", "rmse does not score classes; these do: accuracy"),
        ("--normalise zscore", "unknown preprocessing step"),
        ("--steps nothing", "unknown preprocessing step"),
        ("--drop-columns x99", "drop_columns names column x99"),
        ("--drop-columns " + ",".join(f"x{k}" for k in range(16)), "no feature column is left"),
        ("--categorical nobody", "categorical names column 'nobody'"),
        ("--eta 1,2", "eta must be 3 numbers"),
        ("--class-weight ill", "class_weight must be none, balanced or class=weight"),
        ("--class-weight sick=3", "class_weight names class 'sick'; the classes are ill, well"),
        ("--labels-per-class 80", "labelled nodes"),
        ("--device abacus", "device 'abacus' cannot be used here"),
        ("--preset best", "preset 'best'"),
        ("--label-column nobody", "nobody"),
        ("--id-column nobody", "nobody"),
        ("--weight-column nobody", "nobody"),
        ("--data cora", "edges is given"),
        ("--data-root somewhere", "edges is given"),
        ("--neighbours 3", "your own graph has its edges"),
        ("--protocol published", "data.protocol = published has no effect"),
        ("--heads 2", "this is a setting of attention"),
        ("--rtol 0.1", "has no effect"),
        ("--fermi-r 3", "this is a setting of links"),
        ("--set model.widht=3", "did you mean 'width'"),
        ("--set model", "expected PATH=VALUE"),
        ("--set a.b.c=1", "unknown setting 'a'"),
        ("--settings nowhere.toml", "does not exist"),
        ("--resume nowhere", "leave out data.edges"),
        ("--hidden-dropout 0.5 --task links", "hidden_dropout has no effect"),
        ("--consistency-temperature 0.3", "consistency is 0"),
        ("--calibrate --task regression", "no numbers to learn"),
    ],
)
def test_words_of_train(words, message, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = hgde("train", *named, *QUICK[:4], "--epochs", "1", *words.split(), code=2)
    assert message in output.replace("│ ", "").replace(" │", "")
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("evaluate nowhere", "is not the folder of a run"),
        ("predict RUN --seed 5", "no finished seed 5"),
        ("predict RUN --seed -1", "--seed"),
        ("predict RUN --nodes NODES", "--nodes was given without --edges"),
        ("predict RUN --out table.xlsx", "use .csv, .tsv, .parquet, .npz"),
        ("embed RUN --out z.docx", "use .csv, .tsv, .parquet, .npz"),
        ("predict NODES", "is not the folder of a run"),
        ("predict RUN --edges nowhere.csv", "nowhere.csv"),
        ("train --data coar", "cora"),
        ("train --data-options num_nodes", "NAME=VALUE"),
        ("train --data-options nodes=3", "has no option 'nodes'"),
        ("train --data-options num_nodes=-5", "num_nodes"),
        ("train --resume nowhere", "is not the folder of a run"),
        ("list wines", "choose one of models"),
        ("info", "name a data set with --data"),
        ("nonsense", "nonsense"),
    ],
)
def test_words_of_other_commands(words, message, run, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [{"RUN": str(run), "NODES": named[3]}.get(word, word) for word in words.split()]
    assert message in hgde(*arguments, code=2).replace("│ ", "").replace(" │", "")


def test_a_bad_settings_file_is_named(named, tmp_path):
    (tmp_path / "s.toml").write_text("[model]\nwidht = 5\n")
    output = hgde("train", *named, "--settings", tmp_path / "s.toml", "--out", tmp_path / "run", code=2)
    assert "s.toml" in output
    assert "did you mean 'width'" in output
    (tmp_path / "s.toml").write_text("[model\n")
    output = hgde("train", *named, "--settings", tmp_path / "s.toml", "--out", tmp_path / "run", code=2)
    assert "cannot be read" in output
    assert not (tmp_path / "run").exists()


def test_a_bad_graph_is_refused_before_anything_is_written(tmp_path):
    named = write_graph(tmp_path)
    with (tmp_path / "edges.csv").open("a") as file:
        file.write("p1,nobody\n")
    assert "nobody" in hgde("train", *named, "--out", tmp_path / "run", code=2)
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use(named, run):
    assert "already holds a run" in hgde("train", *named, *QUICK, "--out", run, code=2)


def test_a_folder_that_cannot_be_made(named, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot" in hgde("train", *named, *QUICK, "--out", tmp_path / "file" / "run", code=2)


def test_a_stray_seed_folder_is_let_be(named, tmp_path):
    hgde("train", *named, *QUICK, "--epochs", "1", "--out", tmp_path / "run")
    (tmp_path / "run" / "seed-abc").mkdir()
    hgde("predict", tmp_path / "run", "--out", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 90


def test_a_graph_the_model_cannot_answer_for(named, tmp_path):
    """Spread labels are those of one graph."""
    hgde("train", *named, "--model", "label-propagation", "--out", tmp_path / "run")
    (tmp_path / "other").mkdir()
    other = write_graph(tmp_path / "other", num_nodes=40)
    assert "90 nodes" in hgde("predict", tmp_path / "run", *other, code=2)


def test_an_endless_loss_is_explained(tmp_path):
    """Features of absurd size end in advice."""
    named = write_graph(tmp_path)
    table = pd.read_csv(tmp_path / "nodes.csv")
    table["x0"] = np.where(np.arange(len(table)) % 2 == 0, 1e38, -1e38)
    table.to_csv(tmp_path / "nodes.csv", index=False)
    words = [
        "--normalise",
        "none",
        "--lr",
        "1e30",
        "--clip",
        "1e38",
        "--warm-up",
        "0",
        "--epochs",
        "3",
        "--preset",
        "none",
    ]
    output = hgde("train", *named, *words, "--out", tmp_path / "run", code=2)
    assert "error:" in output
