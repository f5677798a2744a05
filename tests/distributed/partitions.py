"""A small graph with hubs, cut, and trained on threads that play ranks."""

import numpy as np
import torch
from thread_ranks import on_ranks

from hgde import make_settings, randomness
from hgde.data import Dataset
from hgde.distributed.crew import Crew
from hgde.distributed.flow import scale_encoder
from hgde.distributed.make import make_partition
from hgde.distributed.trainer import PartitionedTrainer
from hgde.graph import Graph
from hgde.pipeline.prepare import build_learner, number_type, prepare


def hub_graph(num_nodes=160, seed=0):
    """A ring, three hubs that most nodes are joined to, a node by itself, dense features, two classes."""
    random = np.random.default_rng(seed)
    ring = [(k, (k + 1) % (num_nodes - 1)) for k in range(num_nodes - 1)]
    hubs = [(hub, k) for hub in (3, 50, 111) for k in range(num_nodes - 1) if k != hub and random.random() < 0.4]
    labels = (np.arange(num_nodes) * 2) // num_nodes
    features = random.standard_normal((num_nodes, 5)).astype(np.float32) + labels[:, None]
    return Dataset(
        "hubs",
        Graph.from_edges(ring + hubs, num_nodes),
        torch.from_numpy(features),
        labels=torch.from_numpy(labels.astype(np.int64)),
        class_names=["left", "right"],
    )


def settings_of(task="nodes", model=None, training=None, dtype="float32"):
    return make_settings(
        {
            "task": {"name": task},
            "model": {"name": "hgde", "width": 8, "time": 2.0, **(model or {})},
            "training": {"epochs": 3, "warm_up": 0, **(training or {})},
            "run": {"dtype": dtype},
            "preset": "none",
        }
    )


def prepared_for(settings, dataset=None):
    return prepare(settings, hub_graph() if dataset is None else dataset)


def weights_after(partition, settings, prepared, ranks, epochs=3, path=None, resume=False, scratch=None):
    """State of the learner after so many epochs on so many ranks, as every rank has it; and the trainers."""

    def work(group):
        task = prepared.problem.task
        learner = build_learner(settings, task, prepared.shape, randomness.make_generator(0))
        crew = Crew(partition, group, learner, number_type(settings), scratch)
        scale_encoder(crew)
        trainer = PartitionedTrainer(crew, task, settings.training, 0, path, 1)
        trainer.start(resume)
        trainer.advance(epochs)
        return {name: value.clone() for name, value in learner.state_dict().items()}, trainer

    return on_ranks(ranks, work)


def cut(tmp_path, prepared, settings, pieces=5, **options):
    return make_partition(tmp_path / "parts", prepared, settings, pieces, **options)


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name
