"""Runs: the same seed gives the same bits, several seeds give mean and spread, the test labels decide nothing."""

import json
import math
from dataclasses import replace

import pytest
import torch

from hgde.data.sets.disease_sim import simulate_disease
from hgde.settings import Settings
from hgde.training.checkpoint import CheckpointError, load
from hgde.training.prepare import make_task
from hgde.training.run import Reporter, RunError, build_hgde, load_model, train
from hgde.training.trainer import TrainingError

SETTINGS = Settings(width=4, time=2.0, epochs=12, lr=0.05, dropout=0.3, threads=1, checkpoint_every=5)
NODES, LINKS = SETTINGS, SETTINGS.replace(task="links", lr=0.02)


@pytest.fixture(scope="module")
def dataset():
    return simulate_disease(seed=0, num_nodes=200)


def tensors(folder, seed=0):
    return load(folder / f"seed-{seed}" / "model.safetensors")[0]


@pytest.mark.parametrize("settings", [NODES, LINKS], ids=["nodes", "links"])
def test_same_seed_same_bits(settings, dataset, tmp_path):
    for name in ("one", "two"):
        train(settings, tmp_path / name, dataset=dataset)
    one, two = ((tmp_path / name / "seed-0" / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_another_seed_gives_other_bits(dataset, tmp_path):
    for seed in (0, 1):
        train(SETTINGS.replace(seed=seed), tmp_path / str(seed), dataset=dataset)
    weights = [tensors(tmp_path / str(seed), seed)["encoder.linear.weight"] for seed in (0, 1)]
    assert not torch.equal(*weights)


def test_several_seeds_in_one_run_equal_single_ones(dataset, tmp_path):
    summary = train(SETTINGS.replace(seeds=3), tmp_path / "all", dataset=dataset)
    scores = [outcome.test["accuracy"] for outcome in summary.outcomes]
    assert [outcome.seed for outcome in summary.outcomes] == [0, 1, 2]
    assert summary.mean() == pytest.approx(sum(scores) / 3)
    assert summary.std() == pytest.approx(math.sqrt(sum((s - sum(scores) / 3) ** 2 for s in scores) / 2))
    train(SETTINGS.replace(seed=2), tmp_path / "third", dataset=dataset)
    alone, together = tensors(tmp_path / "third", 2), tensors(tmp_path / "all", 2)
    assert all(torch.equal(alone[name], together[name]) for name in alone)
    told = json.loads((tmp_path / "all" / "summary.json").read_text())
    assert told["mean"] == summary.mean()
    assert json.loads((tmp_path / "all" / "settings.json").read_text()) == SETTINGS.replace(seeds=3).to_dict()


@pytest.mark.parametrize("settings", [NODES, LINKS, NODES.replace(averaging=0.9)], ids=["nodes", "links", "averaged"])
def test_a_stopped_run_resumes_to_the_very_same_result(settings, dataset, tmp_path):
    class Stop(Exception):
        pass

    class Stopper:
        def seed_started(self, seed, settings): ...
        def seed_done(self, outcome): ...
        def epoch_done(self, epoch):
            if epoch.number == 8:
                raise Stop

    whole = train(settings, tmp_path / "whole", dataset=dataset)
    with pytest.raises(Stop):
        train(settings, tmp_path / "stopped", dataset=dataset, reporter=Stopper())
    resumed = train(settings, tmp_path / "stopped", dataset=dataset, resume=True)
    one, two = tensors(tmp_path / "whole"), tensors(tmp_path / "stopped")
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert resumed.outcomes[0].history == whole.outcomes[0].history
    assert resumed.outcomes[0].test == whole.outcomes[0].test
    again = train(settings, tmp_path / "stopped", dataset=dataset, resume=True)
    assert again.outcomes[0].test == whole.outcomes[0].test, "resuming a finished run changes nothing"


def test_validating_less_often_trains_the_same(dataset):
    often, seldom = (
        train(NODES.replace(validate_every=every, epochs=9, patience=9), dataset=dataset).outcomes[0]
        for every in (1, 4)
    )
    assert seldom.epochs == 9
    assert seldom.history == [often.history[epoch - 1] for epoch in (4, 8, 9)]
    assert seldom.best_epoch in (4, 8, 9)


def test_averaging_scores_the_running_mean_of_the_weights(dataset, tmp_path):
    models, seen = [], []

    class Watcher(Reporter):
        def epoch_done(self, epoch):
            seen.append(models[0].encoder.linear.weight.detach().clone())

    def build(*args):
        models.append(build_hgde(*args))
        return models[0]

    settings = NODES.replace(averaging=0.8, epochs=3, patience=3)
    outcome = train(settings, tmp_path, dataset=dataset, reporter=Watcher(), build=build).outcomes[0]
    mean = seen[0]
    for later in seen[1 : outcome.best_epoch]:
        mean = 0.8 * mean + 0.2 * later
    torch.testing.assert_close(tensors(tmp_path)["encoder.linear.weight"], mean)


def test_test_labels_decide_neither_training_nor_selection(dataset, tmp_path):
    honest = make_task(dataset, SETTINGS)
    labels = dataset.labels.clone()
    labels[honest.test] = labels[honest.test][torch.randperm(honest.test.numel(), generator=torch.Generator())]
    spoilt = replace(dataset, labels=labels)
    other = make_task(spoilt, SETTINGS)
    # The split is drawn per class, so the spoilt labels are put under the honest split.
    other.train, other.val, other.test = honest.train, honest.val, honest.test
    other.train_labels, other.val_labels = labels[other.train], labels[other.val]
    other._test_labels = labels[other.test]
    one = train(SETTINGS, tmp_path / "honest", dataset=dataset, task=honest).outcomes[0]
    two = train(SETTINGS, tmp_path / "spoilt", dataset=spoilt, task=other).outcomes[0]
    assert one.best_epoch == two.best_epoch
    assert one.history == two.history
    assert one.test != two.test
    weights = tensors(tmp_path / "honest"), tensors(tmp_path / "spoilt")
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_early_stopping_keeps_the_best_epoch(dataset):
    outcome = train(SETTINGS.replace(epochs=200, patience=5), dataset=dataset).outcomes[0]
    assert outcome.epochs == outcome.best_epoch + 5 < 200
    best = outcome.history[outcome.best_epoch - 1]
    assert outcome.validation["accuracy"] == best["score"] == max(epoch["score"] for epoch in outcome.history)


def test_training_leaves_random_numbers_and_threads_alone(dataset):
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    train(SETTINGS.replace(epochs=2), dataset=dataset)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


class TestRefusals:
    def test_a_folder_that_holds_a_run(self, dataset, tmp_path):
        short = SETTINGS.replace(epochs=2)
        train(short, tmp_path, dataset=dataset)
        with pytest.raises(RunError, match="holds a run already"):
            train(short, tmp_path, dataset=dataset)
        with pytest.raises(RunError, match="width: 4 then, 5 now"):
            train(short.replace(width=5), tmp_path, dataset=dataset, resume=True)

    def test_refused_data_leaves_no_folder(self, dataset, tmp_path):
        features = dataset.features.clone()
        features[3, 1] = math.nan
        with pytest.raises(ValueError, match="feature 1 of node"):
            train(SETTINGS, tmp_path / "run", dataset=replace(dataset, features=features))
        assert not (tmp_path / "run").exists()

    def test_a_folder_without_a_run(self, tmp_path):
        with pytest.raises(RunError, match=r"no settings\.json"):
            load_model(tmp_path)

    def test_a_device_that_is_not_there(self, dataset):
        with pytest.raises(RunError, match="device 'abacus' cannot be used"):
            train(SETTINGS.replace(device="abacus"), dataset=dataset)

    def test_a_loss_that_is_no_number(self, dataset):
        with pytest.raises(RuntimeError, match="smaller learning rate"):
            train(SETTINGS.replace(lr=1e30), dataset=dataset)

    def test_a_checkpoint_that_is_none(self, dataset, tmp_path):
        train(SETTINGS.replace(epochs=2), tmp_path, dataset=dataset)
        (tmp_path / "seed-0" / "checkpoint.safetensors").write_bytes(b"\x80\x04junk")
        with pytest.raises(CheckpointError, match="is not a checkpoint of this package"):
            train(SETTINGS.replace(epochs=2), tmp_path, dataset=dataset, resume=True)


def test_a_model_read_back_says_the_same(dataset, tmp_path):
    train(SETTINGS, tmp_path, dataset=dataset)
    trained = load_model(tmp_path)
    task = make_task(dataset, SETTINGS)
    with torch.no_grad():
        scores = task.test_scores(trained.model, task.outputs(trained.model))
    told = json.loads((tmp_path / "seed-0" / "result.json").read_text())
    assert scores == told["test"]
    assert trained.meta["curvatures"]["diffusion"] == trained.model.curvatures()["diffusion"]


@pytest.mark.parametrize("keep", ["score", "loss"])
def test_the_epoch_that_is_kept_is_the_best_by_what_was_asked_for(keep):
    outcome = train(SETTINGS.replace(keep=keep)).outcomes[0]
    kept = outcome.history[outcome.best_epoch - 1]
    if keep == "loss":
        assert kept["validation_loss"] == min(epoch["validation_loss"] for epoch in outcome.history)
    else:
        assert kept["score"] == max(epoch["score"] for epoch in outcome.history)


@pytest.mark.parametrize("method", ["heuler", "rk4"])
def test_weights_spoilt_by_a_step_end_the_run_with_advice(method):
    with pytest.raises(TrainingError, match="smaller learning rate"):
        train(SETTINGS.replace(lr=1e38, method=method))
