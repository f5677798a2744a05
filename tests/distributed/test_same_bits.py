"""Weights do not depend on the number of ranks, and are those of ordinary training up to rounding."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from partitions import assert_same, cut, hub_graph, prepared_for, settings_of, weights_after

from hgde import randomness
from hgde.diffusion import LOCAL
from hgde.pipeline.prepare import build_learner
from hgde.solvers import SOLVERS
from hgde.solvers.registry import resolve
from hgde.training.trainer import Trainer

CASES = [
    *[(name, "heuler", "nodes") for name in LOCAL],
    *[("isotropic", name, "nodes") for name in SOLVERS if name != "heuler"],
    ("global", "heuler", "nodes"),
    ("local-global", "rk4", "nodes"),
    ("attention", "hrk4", "nodes"),
    ("ricci", "rk4", "nodes"),
    ("isotropic", "heuler", "links"),
    ("attention", "rk4", "links"),
]


@pytest.mark.parametrize(("diffusivity", "solver", "task"), CASES)
def test_any_number_of_ranks_gives_the_same_bits(tmp_path, diffusivity, solver, task):
    # A coarse tolerance: a few steps of adapted length are as good as many.
    tolerance = {"rtol": 1e-2, "atol": 1e-2} if resolve(solver).adaptive else {}
    settings = settings_of(task, {"diffusivity": {"name": diffusivity}, "solver": {"name": solver, **tolerance}})
    prepared = prepared_for(settings)
    # How pieces are divided among ranks, and what a second epoch adds, does not depend on the diffusivity or solver:
    # these differ in what pieces exchange and when. So two diffusivities have every number of ranks, the others one.
    every = solver == "heuler" and diffusivity in ("isotropic", "attention")
    # Three pieces on two ranks are divided unevenly too, and each exchanges with two others.
    counts, pieces, epochs = ((2, 3, 4), 5, 2) if every else ((2,), 3, 1)
    partition = cut(tmp_path, prepared, settings, pieces, ricci=0.5 if diffusivity == "ricci" else None)
    expected, first = weights_after(partition, settings, prepared, 1, epochs=epochs)[0]
    for ranks in counts:
        for state, trainer in weights_after(partition, settings, prepared, ranks, epochs=epochs):
            assert_same(expected, state)
            assert_same(gradients_of(first), gradients_of(trainer))


def gradients_of(trainer):
    """Gradients of the last step: a first step of Adam hardly tells how long they were."""
    return {name: p.grad for name, p in trainer.learner.named_parameters() if p.grad is not None}


# Weights between all pairs are divided among ranks on the ball alone.
STEPS = [
    ("global", "ball"),
    *product(("isotropic", "attention", "ricci", "symmetric"), ("ball", "lorentz", "euclidean")),
]


@pytest.mark.parametrize(("diffusivity", "space"), STEPS)
def test_a_step_is_that_of_ordinary_training(tmp_path, diffusivity, space):
    model = {"diffusivity": {"name": diffusivity}, "dropout": 0.0, "learn_eta": True, "space": {"name": space}}
    settings = settings_of("nodes", model, {"clip": None}, "float64")
    prepared = prepared_for(settings)
    partition = cut(tmp_path, prepared, settings, ricci=0.5)
    _, trainer = weights_after(partition, settings, prepared, 2, epochs=1)[0]
    learner = build_learner(settings, prepared.problem.task, prepared.shape, randomness.make_generator(0))
    learner.model.begin(prepared.problem.inputs, prepared.problem.graph)
    whole = Trainer(learner, prepared.problem, settings.training, 0, randomness.make_generator(0))
    whole.start()
    whole.advance(1)
    assert trainer.progress.history[0]["loss"] == pytest.approx(whole.progress.history[0]["loss"], rel=1e-12)
    for (name, one), other in zip(trainer.learner.named_parameters(), whole.learner.parameters(), strict=True):
        assert one.grad is not None
        assert torch.allclose(one.grad, other.grad, rtol=1e-9, atol=1e-13), name


def test_the_gradient_by_recomputing_is_the_same(tmp_path):
    stored, again = (
        settings_of("nodes", {"gradient": how, "solver": {"name": "rk4"}}) for how in ("backprop", "recompute")
    )
    prepared = prepared_for(stored)
    partition = cut(tmp_path, prepared, stored)
    expected, first = weights_after(partition, stored, prepared, 1, epochs=1)[0]
    for state, trainer in weights_after(partition, again, prepared, 3, epochs=1):
        assert_same(expected, state)
        assert_same(gradients_of(first), gradients_of(trainer))


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_other_tasks_on_nodes(tmp_path, task):
    """The loss is the whole graph's, though what is unknown is spread unevenly over the pieces."""
    dataset = hub_graph()
    values = torch.stack([dataset.features[:, 0], dataset.features[:, 1]], 1).double()
    values[::7, 0] = torch.nan
    sets = (values > 0).to(torch.int8)
    sets[::7, 0] = -1
    known = {"values": values} if task == "regression" else {"label_sets": sets}
    dataset = replace(dataset, labels=None, class_names=None, target_names=["one", "two"], **known)
    settings = settings_of(task, {"dropout": 0.0}, {"clip": None}, "float64")
    prepared = prepared_for(settings, dataset)
    partition = cut(tmp_path, prepared, settings)
    (_, trainer), (_, other) = weights_after(partition, settings, prepared, 2, epochs=2)
    learner = build_learner(settings, prepared.problem.task, prepared.shape, randomness.make_generator(0))
    learner.model.begin(prepared.problem.inputs, prepared.problem.graph)
    whole = Trainer(learner, prepared.problem, settings.training, 0, randomness.make_generator(0))
    whole.start()
    whole.advance(2)
    assert trainer.progress.history == other.progress.history
    for one, two in zip(trainer.progress.history, whole.progress.history, strict=True):
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-9)
        assert one["score"] == pytest.approx(two["score"], rel=1e-9)


def test_averages_and_sample_weights(tmp_path):
    settings = settings_of("nodes", training={"averaging": 0.5})
    prepared = prepared_for(settings)
    partition = cut(tmp_path, prepared, settings)
    first = weights_after(partition, settings, prepared, 1)[0]
    second = weights_after(partition, settings, prepared, 3)[2]
    assert_same(first[0], second[0])
    assert first[1].progress.history == second[1].progress.history


@pytest.mark.parametrize("diffusivity", ["isotropic", "global"])
def test_any_number_of_threads_gives_the_same_bits(tmp_path, diffusivity):
    """torch splits the products of so many nodes, forward and backward, among its threads."""
    settings = settings_of("nodes", {"diffusivity": {"name": diffusivity}, "width": 16})
    prepared = prepared_for(settings, hub_graph(600))
    partition = cut(tmp_path, prepared, settings, pieces=4)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found += weights_after(partition, settings, prepared, 1, epochs=1)
    finally:
        torch.set_num_threads(before)
    (one, first), (other, second) = found
    assert_same(one, other)
    assert_same(gradients_of(first), gradients_of(second))
