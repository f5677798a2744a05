"""What is said at the end of a run: each warning is provoked once, and kept quiet on a run that went well."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hgde.data import Dataset
from hgde.data.sets.disease_sim import simulate_disease
from hgde.graph import Graph
from hgde.pipeline import fit, make_settings
from hgde.pipeline.remarks import remarks
from hgde.sections import overlay

BASE = {
    "preset": "none",
    "model": {"width": 8, "time": 2.0, "dropout": 0.0},
    "training": {"epochs": 25, "lr": 0.05},
    "run": {"threads": 1},
}
WORDS = {
    "near chance": "is close to guessing",
    "all equal": "every node is predicted to be",
    "projected": "projected back from the boundary",
    "far above": "the model overfits",
    "curvature": "to the limit of its range",
}


def told(dataset, **changes):
    return remarks(fit(make_settings(overlay(BASE, changes)), dataset=dataset))


def kinds(made):
    return {kind for kind, words in WORDS.items() if any(words in warning for warning in made.warnings)}


@pytest.fixture(scope="module")
def clear():
    """An epidemic that every person's measurements show."""
    return simulate_disease(seed=0, num_nodes=240, signal=4.0)


def noise(num_nodes=400, num_features=40):
    """Labels that nothing has to do with."""
    random = np.random.RandomState(0)
    pairs = random.randint(0, num_nodes, (2, 2 * num_nodes))
    return Dataset(
        "noise",
        Graph.from_edges(pairs, num_nodes),
        torch.from_numpy(random.standard_normal((num_nodes, num_features)).astype(np.float32)),
        labels=torch.from_numpy(random.randint(0, 2, num_nodes)),
    )


@pytest.fixture(scope="module")
def quiet(clear):
    return told(clear)


def test_a_run_that_went_well_is_not_warned_of(quiet):
    assert quiet.warnings == []


def test_sizes_classes_and_baselines_are_said(quiet, clear):
    assert sum(quiet.parts.values()) == clear.num_nodes
    assert sum(quiet.classes.values()) == quiet.parts["train"]
    assert set(quiet.baselines) == {"majority", "label-propagation", "logistic-regression"}
    assert quiet.baselines["logistic-regression"] > quiet.baselines["majority"]


def test_labels_that_nothing_explains_are_near_chance():
    assert "near chance" in kinds(told(noise(), training={"epochs": 3}))


def test_more_columns_than_nodes_are_learned_by_heart():
    alone = {"width": 32, "time": 1.0, "eta": [0.0, 0.0, 1.0]}
    made = told(noise(300, 400), training={"epochs": 30, "weight_decay": 0.0}, model=alone)
    assert "far above" in kinds(made)


def test_links_at_random_are_near_chance():
    made = told(noise(), task={"name": "links"}, training={"epochs": 3})
    assert "near chance" in kinds(made)
    assert set(made.baselines) == {"common-neighbours", "adamic-adar"}


def test_one_class_for_all(clear):
    same = replace(clear, features=torch.ones(clear.num_nodes, 3))
    made = told(same, preprocessing={"normalise": "none"}, training={"epochs": 3})
    assert "all equal" in kinds(made)


def test_points_beyond_the_boundary(clear):
    made = told(clear, model={"start_distance": 60.0}, training={"epochs": 3})
    assert "projected" in kinds(made)


def test_a_curvature_that_runs_away(clear):
    made = told(clear, training={"epochs": 12, "lr_curvature": 40.0})
    assert "curvature" in kinds(made)
    fixed = {"space": {"name": "ball", "learn_curvature": False}}
    assert "curvature" not in kinds(told(clear, model=fixed, training={"epochs": 3}))


def test_each_warning_says_what_to_try(clear):
    made = [
        told(noise(), training={"epochs": 3}),
        told(noise(), task={"name": "links"}, training={"epochs": 3}),
        told(clear, model={"start_distance": 60.0}, training={"epochs": 3, "lr_curvature": 40.0}),
    ]
    warnings = [warning for one in made for warning in one.warnings]
    assert warnings
    for warning in warnings:
        assert "try " in warning or "check " in warning
