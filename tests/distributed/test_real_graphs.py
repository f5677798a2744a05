"""Thirty epochs on Cora, PubMed and a graph with hubs: the same bits on 1 to 4 ranks and with pieces on disk."""

from itertools import product

import pytest
import torch
from partitions import assert_same, cut, hub_graph, prepared_for, settings_of, weights_after

from hgde import randomness
from hgde.data import open_dataset
from hgde.data.settings import DataSettings
from hgde.distributed.scratch import Scratch
from hgde.pipeline.prepare import build_learner
from hgde.training.trainer import Trainer

EPOCHS = 30
WEIGHTS, SOLVERS, TASKS = ("isotropic", "attention", "ricci"), ("heuler", "hrk4", "rk4"), ("nodes", "links")
CASES = [*product(["hubs", "cora", "pubmed"], TASKS, WEIGHTS, SOLVERS)]


@pytest.fixture
def graph_called(request):
    def opened(name):
        if name == "hubs":
            return hub_graph(600)
        root = request.getfixturevalue("data_file")(name).parent
        return open_dataset(DataSettings(name=name, root=str(root)))

    return opened


def thirty_epochs(task, diffusivity, solver, **more):
    model = {"diffusivity": {"name": diffusivity}, "solver": {"name": solver}, "width": 16, "time": 2.0, **more}
    return settings_of(task, model, {"epochs": EPOCHS, "validate_every": EPOCHS})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task", "diffusivity", "solver"), CASES)
def test_thirty_epochs_give_the_same_bits(tmp_path, graph_called, name, task, diffusivity, solver):
    settings = thirty_epochs(task, diffusivity, solver)
    prepared = prepared_for(settings, graph_called(name))
    partition = cut(tmp_path, prepared, settings, pieces=4, ricci=0.5 if diffusivity == "ricci" else None)
    expected = weights_after(partition, settings, prepared, 1, epochs=EPOCHS)[0][0]
    for ranks in (2, 3, 4):
        for state, _ in weights_after(partition, settings, prepared, ranks, epochs=EPOCHS):
            assert_same(expected, state)
    scratch = Scratch(tmp_path, smallest=1 << 12)
    ((state, _),) = weights_after(partition, settings, prepared, 1, epochs=EPOCHS, scratch=scratch)
    assert_same(expected, state)
    assert scratch.written > 0
    scratch.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hubs", "cora"])
def test_weights_between_all_pairs_by_the_ring(tmp_path, graph_called, name):
    """The same bits on any number of ranks, and within 1e-6 of the whole graph in one process."""
    settings = thirty_epochs("nodes", "global", "heuler", dropout=0.0)
    prepared = prepared_for(settings, graph_called(name))
    partition = cut(tmp_path, prepared, settings, pieces=4)
    (expected, _), *_ = weights_after(partition, settings, prepared, 1, epochs=EPOCHS)
    for ranks in (2, 3, 4):
        for state, _ in weights_after(partition, settings, prepared, ranks, epochs=EPOCHS):
            assert_same(expected, state)
    learner = build_learner(settings, prepared.problem.task, prepared.shape, randomness.make_generator(0))
    learner.model.begin(prepared.problem.inputs, prepared.problem.graph)
    whole = Trainer(learner, prepared.problem, settings.training, 0, randomness.make_generator(0))
    whole.start()
    whole.advance(EPOCHS)
    for key, value in whole.learner.state_dict().items():
        assert torch.allclose(value, expected[key], rtol=0, atol=1e-6), key
