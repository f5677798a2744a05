"""Runs: the same seed gives the same bits, stopping and going on changes nothing, test labels decide nothing."""

import json
import math
import threading
from dataclasses import replace
from functools import cache

import pytest
import torch

from hgde.data.sets.disease_sim import simulate_disease
from hgde.pipeline import Reporter, RunError, fit, load, make_settings, prepare, resume
from hgde.pipeline.prepare import DeviceError
from hgde.sections import overlay
from hgde.training.checkpoint import CheckpointError
from hgde.training.checkpoint import load as load_checkpoint
from hgde.training.trainer import TrainingError

QUICK = {
    "preset": "none",
    "data": {"options": ["num_nodes=150"]},
    "model": {"width": 4, "time": 2.0, "dropout": 0.3},
    "training": {"epochs": 12, "lr": 0.05},
    "run": {"threads": 1, "checkpoint_every": 5},
}
NODES = make_settings(QUICK)
LINKS = make_settings(overlay(QUICK, {"task": {"name": "links"}, "training": {"lr": 0.02}}))
AVERAGED = NODES.replace({"training.averaging": 0.9})
BASELINE = make_settings({**QUICK, "model": {"name": "gcn"}})
KINDS = pytest.mark.parametrize(
    "settings", [NODES, LINKS, AVERAGED, BASELINE], ids=["nodes", "links", "averaged", "gcn"]
)


@pytest.fixture(scope="module")
def dataset():
    return simulate_disease(seed=0, num_nodes=150)


def weights(folder, seed=0):
    return load_checkpoint(folder / f"seed-{seed}" / "model.safetensors")[0]


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def figures(outcome):
    return outcome.test, outcome.validation, outcome.history, outcome.best_epoch


class Stop(Exception):
    pass


class Stopper(Reporter):
    def __init__(self, epoch):
        self.epoch = epoch

    def epoch_done(self, epoch):
        if epoch.number == self.epoch:
            raise Stop


@KINDS
def test_same_seed_same_bits(settings, tmp_path):
    for name in ("one", "two"):
        fit(settings, tmp_path / name)
    one, two = ((tmp_path / name / "seed-0" / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_several_seeds_in_one_run_equal_single_ones(tmp_path):
    summary = fit(NODES.replace({"run.seeds": 3}), tmp_path / "all").summary
    scores = summary.scores()
    assert [outcome.seed for outcome in summary.outcomes] == [0, 1, 2]
    assert summary.mean() == pytest.approx(sum(scores) / 3)
    assert summary.std() == pytest.approx(math.sqrt(sum((s - sum(scores) / 3) ** 2 for s in scores) / 2))
    fit(NODES.replace({"run.seed": 2}), tmp_path / "third")
    assert same(weights(tmp_path / "third", 2), weights(tmp_path / "all", 2))
    assert not same(weights(tmp_path / "all", 0), weights(tmp_path / "all", 1))
    assert json.loads((tmp_path / "all" / "summary.json").read_text())["mean"] == summary.mean()


@KINDS
def test_a_stopped_run_resumes_to_the_very_same_result(settings, tmp_path):
    whole = fit(settings, tmp_path / "whole").summary
    with pytest.raises(Stop):
        fit(settings, tmp_path / "stopped", reporter=Stopper(8))
    resumed = resume(tmp_path / "stopped").summary
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "stopped"))
    assert figures(resumed.outcomes[0]) == figures(whole.outcomes[0])
    again = resume(tmp_path / "stopped").summary.outcomes[0]
    assert figures(again) == figures(whole.outcomes[0]), "resuming a finished run changes nothing"
    assert again.epoch_ms == resumed.outcomes[0].epoch_ms > 0


@KINDS
def test_raised_epochs_equal_a_longer_run(settings, tmp_path):
    longer = settings.replace({"training.epochs": 20})
    whole = fit(longer, tmp_path / "whole").summary.outcomes[0]
    fit(settings, tmp_path / "run")
    raised = resume(tmp_path / "run", epochs=20).summary.outcomes[0]
    assert raised.epochs == 20
    assert figures(raised) == figures(whole)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "run"))
    assert resume(tmp_path / "run").summary.settings.training.epochs == 20, "the folder remembers"


def test_raised_seeds_are_added(tmp_path):
    fit(NODES, tmp_path / "run")
    summary = resume(tmp_path / "run", seeds=2).summary
    assert [outcome.seed for outcome in summary.outcomes] == [0, 1]
    for name, wanted in (("epochs", 3), ("seeds", 1)):
        with pytest.raises(RunError, match=f"{name} can only be raised"):
            resume(tmp_path / "run", **{name: wanted})


def test_validating_less_often_trains_the_same():
    often, seldom = (
        fit(NODES.replace({"training.validate_every": every, "training.epochs": 9})).summary.outcomes[0]
        for every in (1, 4)
    )
    assert seldom.epochs == 9
    assert seldom.history == [often.history[epoch - 1] for epoch in (4, 8, 9)]
    assert seldom.best_epoch in (4, 8, 9)


def test_test_labels_decide_neither_training_nor_selection(dataset):
    honest = prepare(NODES, dataset).problem
    part = honest.parts["test"]
    other = replace(honest, parts={**honest.parts, "test": replace(part, truth=1 - part.truth)})
    one, two = (fit(NODES, dataset=dataset, problem=problem) for problem in (honest, other))
    assert one.summary.outcomes[0].history == two.summary.outcomes[0].history
    assert one.summary.outcomes[0].test != two.summary.outcomes[0].test
    assert same(one.models[0].learner.state_dict(), two.models[0].learner.state_dict())


def test_early_stopping():
    outcome = fit(NODES.replace({"training.epochs": 300, "training.patience": 5})).summary.outcomes[0]
    assert outcome.epochs == outcome.best_epoch + 5 < 300


@pytest.mark.parametrize("keep", ["score", "loss"])
def test_the_epoch_that_is_kept_is_the_best_by_what_was_asked_for(keep):
    given = {"training.keep": keep} | ({"training.smoothing": 0.0} if keep == "score" else {})
    outcome = fit(NODES.replace(given)).summary.outcomes[0]
    kept = outcome.history[outcome.best_epoch - 1]
    column, best = ("validation_loss", min) if keep == "loss" else ("score", max)
    assert kept[column] == best(epoch[column] for epoch in outcome.history)


@KINDS
def test_a_run_leaves_the_process_as_it_was(settings, tmp_path):
    before = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()
    fit(settings.replace({"training.epochs": 2, "run.threads": 2}), tmp_path)
    load(tmp_path).evaluate()
    after = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_a_run_that_fails_leaves_the_process_as_it_was():
    before = torch.get_rng_state(), torch.get_num_threads()
    with pytest.raises(Stop):
        fit(NODES.replace({"run.threads": 2}), reporter=Stopper(1))
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == torch.get_num_threads()


def test_two_runs_at_once_equal_two_in_turn(dataset):
    """Twenty pairs in two threads, with dropout and negatives drawn by each; in turn, each seed is trained once."""
    tiny = {"training.epochs": 3}

    @cache
    def in_turn(seed):
        kinds = [settings.replace({**tiny, "run.seed": seed}) for settings in (NODES, LINKS)]
        return kinds, [fit(settings, dataset=dataset).models[0].learner.state_dict() for settings in kinds]

    for round_ in range(20):
        kinds, serial = in_turn(seed := round_ % 4)
        results = [None, None]

        def work(place, settings, results=results):
            results[place] = fit(settings, dataset=dataset).models[0].learner.state_dict()

        threads = [threading.Thread(target=work, args=item) for item in enumerate(kinds)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(same(one, two) for one, two in zip(serial, results, strict=True)), f"seed {seed}"


@KINDS
def test_a_model_read_back_gives_the_same(settings, tmp_path):
    result = fit(settings, tmp_path)
    read = load(str(tmp_path))
    assert read.evaluate()["test"] == result.summary.outcomes[0].test
    assert read.evaluate()["val"] == result.summary.outcomes[0].validation
    table, kept = read.predict(), result.models[0].predict()
    assert list(table) == list(kept)
    assert all((table[name] == kept[name]).all() for name in table)
    assert torch.equal(read.embed(), result.models[0].embed())


def test_class_weights_are_read_back(tmp_path):
    result = fit(NODES.replace({"task.class_weight": "balanced"}), tmp_path)
    assert load(tmp_path).evaluate()["test"] == result.summary.outcomes[0].test


class TestRefusals:
    def test_a_folder_that_holds_a_run(self, tmp_path):
        fit(NODES.replace({"training.epochs": 1}), tmp_path)
        with pytest.raises(RunError, match="already holds a run"):
            fit(NODES, tmp_path)

    def test_refused_data_leaves_no_folder(self, dataset, tmp_path):
        features = dataset.features.clone()
        features[3, 1] = math.nan
        with pytest.raises(ValueError, match="feature 1 of node"):
            fit(NODES, tmp_path / "run", dataset=replace(dataset, features=features))
        assert not (tmp_path / "run").exists()

    def test_a_device_that_is_not_there(self):
        with pytest.raises(DeviceError, match="device 'abacus' cannot be used"):
            fit(NODES.replace({"run.device": "abacus"}))

    @pytest.mark.parametrize("method", ["heuler", "rk4"])
    def test_weights_spoilt_by_a_step_end_the_run_with_advice(self, method):
        wild = {"training.lr": 1e38, "training.warm_up": 0, "training.clip": None, "model.solver.name": method}
        with pytest.raises(TrainingError, match="smaller learning rate"):
            fit(NODES.replace(wild))

    def test_weights_of_another_shape_to_start_from(self):
        start = fit(NODES.replace({"training.epochs": 1})).models[0].learner.state_dict()
        with pytest.raises(CheckpointError, match="does not fit the model"):
            fit(NODES.replace({"model.width": 5}), start=start)
