"""Estimators are saved, loaded, pickled, gone on with, and talk only when asked."""

import json
import pickle
import threading
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import made_graphs
from hgde.cli.main import app
from hgde.estimators import HGDEClassifier, HGDEEmbedder, HGDELinkPredictor, HGDEMultiLabelClassifier, HGDERegressor
from hgde.pipeline import RunError
from hgde.training.checkpoint import CheckpointError

QUICK = {"preset": "none", "width": 4, "time": 1.0, "epochs": 6, "lr": 0.05, "threads": 1}
MADE = made_graphs.categories()
LABELS = MADE.nodes["class"].to_numpy()
NUMBERS = MADE.nodes["age"].to_numpy()
SETS = np.stack([LABELS == "yes", MADE.nodes["colour"] == "grey"], axis=1).astype(int)
TARGETS = {
    HGDEClassifier: LABELS,
    HGDERegressor: NUMBERS,
    HGDEMultiLabelClassifier: SETS,
    HGDEEmbedder: None,
    HGDELinkPredictor: None,
}
EVERY = pytest.mark.parametrize("cls", TARGETS)
FRAME = MADE.frame


def fitted(cls, **options):
    return cls(**QUICK | options).fit(FRAME, TARGETS[cls], graph=MADE.graph())


def answers(model):
    if isinstance(model, HGDELinkPredictor):
        return model.predict_proba([[0, 1], [5, 9]])
    if hasattr(model, "predict_proba"):
        return model.predict_proba(FRAME)
    return model.predict(FRAME) if hasattr(model, "predict") else model.transform(FRAME)


@EVERY
def test_saved_and_loaded(cls, tmp_path):
    model = fitted(cls)
    model.save(tmp_path / "model")
    read = cls.load(tmp_path / "model")
    np.testing.assert_array_equal(answers(read), answers(model))
    assert read.get_params() == model.get_params()
    assert read.best_epoch_ == model.best_epoch_
    assert list(read.feature_names_in_) == list(FRAME.columns)
    with pytest.raises(RunError, match="already holds a run"):
        model.save(tmp_path / "model")
    other = HGDEEmbedder if cls is not HGDEEmbedder else HGDEClassifier
    with pytest.raises(RunError, match=f"holds a {cls.__name__}, not a {other.__name__}"):
        other.load(tmp_path / "model")


@EVERY
def test_the_command_line_reads_what_was_saved(cls, tmp_path):
    from typer.testing import CliRunner

    fitted(cls).save(tmp_path / "model")
    for words in (
        ["evaluate"],
        ["embed", "--out", str(tmp_path / "z.npz")],
        ["predict", "--out", str(tmp_path / "p.csv")],
    ):
        result = CliRunner().invoke(app, [words[0], str(tmp_path / "model"), *words[1:]])
        assert result.exit_code == 0, result.output
        assert "has changed" not in result.output
    table = pd.read_csv(tmp_path / "p.csv")
    assert "train" in set(table["part"]) or cls in (HGDEEmbedder, HGDELinkPredictor)


@pytest.mark.parametrize("field", ["parameters", "features", "fitted", "given_graph", "trained_on"])
def test_a_damaged_description_is_refused(field, tmp_path):
    fitted(HGDEClassifier).save(tmp_path / "model")
    path = tmp_path / "model" / "estimator.json"
    content = json.loads(path.read_text())
    del content[field]
    path.write_text(json.dumps(content))
    with pytest.raises(RunError, match=field):
        HGDEClassifier.load(tmp_path / "model")


@EVERY
def test_pickled_and_cloned(cls):
    model = fitted(cls)
    np.testing.assert_array_equal(answers(pickle.loads(pickle.dumps(model))), answers(model))
    again = clone(model)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(answers(again.fit(FRAME, TARGETS[cls], graph=MADE.graph())), answers(model))


@EVERY
def test_warm_start_goes_on(cls):
    cold = fitted(cls, lr=0.01)
    warm = cls(**QUICK | {"lr": 0.01}, warm_start=True)
    first = warm.fit(FRAME, TARGETS[cls], graph=MADE.graph()).history_
    assert first == cold.history_
    second = warm.fit(FRAME, TARGETS[cls], graph=MADE.graph()).history_
    assert second[0]["loss"] < first[0]["loss"]


def test_warm_start_with_other_columns_is_refused():
    model = fitted(HGDEClassifier, warm_start=True)
    with pytest.raises(CheckpointError, match="does not fit the model"):
        model.fit(FRAME.drop(columns="age"), LABELS, graph=MADE.graph())


def test_verbose(capsys):
    fitted(HGDEClassifier)
    assert capsys.readouterr() == ("", "")
    fitted(HGDEClassifier, verbose=1)
    assert "seed 0" in capsys.readouterr().err


def test_any_setting_by_path():
    model = fitted(HGDEClassifier, method="rk4", options={"model.solver.step": 0.5})
    assert model._fitted.settings.model.options.solver.options.step == 0.5


def test_baselines_are_models_too():
    model = HGDEClassifier(preset="none", options={"model": {"name": "mlp", "width": 8}}, epochs=40, lr=0.05, threads=1)
    shown = np.where(MADE.part == "test", None, LABELS)
    model.fit(FRAME, shown, graph=MADE.graph())
    assert (model.predict(FRAME) == LABELS)[MADE.part == "test"].mean() > 0.6
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(FRAME), model.predict(FRAME))


def test_two_fits_at_once_equal_two_in_turn():
    """Twenty pairs in two threads; in turn, each seed is trained once."""

    @cache
    def in_turn(seed):
        return [answers(fitted(cls, epochs=2, random_state=seed)) for cls in (HGDEClassifier, HGDELinkPredictor)]

    for round_ in range(20):
        options, serial = {"epochs": 2, "random_state": round_ % 4}, in_turn(round_ % 4)
        results = {}

        def work(cls, results=results, options=options):
            results[cls] = answers(fitted(cls, **options))

        threads = [threading.Thread(target=work, args=(cls,)) for cls in (HGDEClassifier, HGDELinkPredictor)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(results[HGDEClassifier], serial[0])
        np.testing.assert_array_equal(results[HGDELinkPredictor], serial[1])
