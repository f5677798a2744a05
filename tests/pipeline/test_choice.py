"""The choice among presets: what it costs, that a seed fixes it, that a user's settings win, and how its log reads."""

import json

import pytest
import torch

from hgde.data.sets.disease_sim import simulate_disease
from hgde.graph import Graph
from hgde.models.base import MODELS
from hgde.models.presets import FEW_LABELS, LINK_PRESETS, MANY_LABELS, NO_CLASSES, PRESETS
from hgde.pipeline import Reporter, fit, load, make_settings, prepare
from hgde.pipeline.presets import Choice, Rung, preset_names, rungs_for, with_preset
from hgde.sections import overlay

# Narrow and short, so that a race takes seconds; what is given wins over every preset.
SMALL = {
    "model": {"width": 4, "time": 1.0},
    "training": {"epochs": 50, "lr": 0.05},
    "run": {"threads": 1},
}


@pytest.fixture(scope="module")
def dataset():
    return simulate_disease(seed=0, num_nodes=120, signal=2.0)


@pytest.fixture(scope="module")
def run(dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("race") / "run"
    return fit(make_settings(SMALL), folder, dataset=dataset), folder


@pytest.mark.parametrize("count", range(1, 12))
@pytest.mark.parametrize("epochs", [50, 200, 400])
def test_a_race_trains_at_most_three_times_the_epochs(count, epochs):
    rungs = rungs_for(count, epochs)
    assert rungs == sorted(set(rungs))
    trained, left, before = 0, count, 0
    for rung in rungs:
        trained += left * (rung - before)
        left, before = (left + 1) // 2, rung
    assert trained + epochs - rungs[-1] <= 3 * epochs


def test_the_same_seed_chooses_and_trains_the_same_bits(run, dataset):
    first, _ = run
    again = fit(make_settings(SMALL), dataset=dataset)
    assert again.choice == first.choice
    assert again.summary.outcomes[0].history == first.summary.outcomes[0].history
    one, two = (result.models[0].learner.state_dict() for result in (first, again))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_chosen_preset_trains_as_if_it_had_been_asked_for(run, dataset):
    first, _ = run
    asked = fit(make_settings({**SMALL, "preset": first.choice.chosen}), dataset=dataset)
    assert asked.choice is None
    assert asked.summary.outcomes[0].test == first.summary.outcomes[0].test


def test_the_log_is_kept_and_reads_well(run):
    result, folder = run
    kept = json.loads((folder / "choice.json").read_text())
    assert kept == json.loads(json.dumps(result.choice.to_dict()))
    lines = result.choice.lines()
    assert lines[-1] == f"chosen: {result.choice.chosen}"
    assert all(line.startswith("epoch ") for line in lines[:-1])
    assert Choice("a", [Rung(5, {"a": 0.5, "b": 0.75}, ["b"])]).lines() == ["epoch 5: b 75.0, a 50.0", "chosen: a"]
    both = Rung(5, {"a": 0.80, "b": 0.81}, ["a"], {"a": 0.5, "b": 0.9})
    assert Choice("a", [both]).lines()[0] == "epoch 5: a 80.0 (loss 0.50), b 81.0 (loss 0.90)"
    assert load(folder).settings.preset == result.choice.chosen


def test_what_a_user_gave_wins_over_every_preset(run):
    settings = run[0].summary.settings
    assert settings.model.options.width == 4
    assert settings.training.epochs == 50


def test_candidates_follow_the_share_of_labels():
    hgde, graph = MODELS.get("hgde"), Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), 3)
    assert hgde.candidates("nodes", graph, 0.6) == MANY_LABELS
    assert hgde.candidates("nodes", graph, 0.05) == FEW_LABELS
    assert hgde.candidates("links", graph) == tuple(LINK_PRESETS)
    assert hgde.candidates("regression", graph) == NO_CLASSES


def test_equal_candidates_run_once(dataset):
    settings = make_settings({"model": {"diffusivity": "isotropic", "space": "euclidean", "time": 1.0}})
    problem = prepare(settings, dataset).problem
    names = preset_names(settings, problem)
    resolved = [json.dumps(with_preset(settings, name).to_dict() | {"preset": ""}, sort_keys=True) for name in names]
    assert len(set(resolved)) == len(resolved)


@pytest.mark.parametrize("name", [*PRESETS, *LINK_PRESETS])
def test_every_preset_trains(name, dataset):
    task = {"task": {"name": "links" if name in LINK_PRESETS else "nodes"}}
    # All with kernels of one width: compiling them for each would take longer than everything else here.
    short = {"preset": name, "model": {"width": 8}, "training": {"epochs": 2}, "run": {"threads": 1}}
    settings = make_settings(overlay(short, task))
    result = fit(settings, dataset=dataset)
    assert result.summary.settings.preset == name
    assert result.summary.outcomes[0].epochs == 2


def test_what_a_preset_says_of_the_task_acts(dataset):
    class Seen(Reporter):
        def seed_started(self, seed, settings):
            self.options = settings.task.options

    seen = Seen()
    settings = make_settings({**SMALL, "preset": "links", "task": {"name": "links"}, "training": {"epochs": 1}})
    result = fit(settings, dataset=dataset, reporter=seen)
    assert seen.options.hidden_edges == 0.2
    assert result.models[0].task.options.structure
    assert hasattr(result.models[0].learner.head, "decoder")
