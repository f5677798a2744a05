"""Every rule of the advice, by rows made up for it."""

import zlib

import numpy as np

from hgde.experiments.advice import advise
from hgde.experiments.systems import find_system
from hgde.experiments.table import Row, rank_rows


def row(name, mean, seconds=1.0, spread=0.3, runs=5):
    random = np.random.default_rng(zlib.crc32(name.encode()))
    noise = random.normal(0, spread, runs)
    scores = {(k, k): float(mean + value) for k, value in enumerate(noise - noise.mean())} if runs else {}
    return Row(find_system(name), "accuracy", scores, 5, seconds=seconds)


def said(*rows):
    return advise(rank_rows(rows))


def test_nothing_finished():
    assert said(row("gcn", 0, runs=0)).startswith("No system finished")


def test_what_did_not_finish_is_named():
    words = said(row("gcn", 80, 10), row("mlp", 60), row("hgde", 0, runs=0), row("gat", 0, runs=0))
    assert words.startswith("Take gcn")
    assert "hgde, gat did not finish" in words


def test_guessing_is_as_good():
    assert said(row("gcn", 60.1), row("majority", 60.0)).startswith("Nothing here beats guessing")


def test_features_alone_are_as_good():
    words = said(row("gcn", 80.1, 10), row("mlp", 80.0, 1), row("majority", 50))
    assert words.startswith("Take mlp")
    assert "sees no edges" in words


def test_a_model_of_features_that_reads_labels_has_seen_edges():
    reading = row("mlp+", 80.0, 1)
    reading.extras = ["labels read", "averaged"]
    words = said(row("gcn", 80.1, 10), reading, row("majority", 50))
    assert words.startswith("Take mlp+")
    assert "sees no edges" not in words
    agreeing = row("mlp+", 80.0, 1)
    agreeing.extras = ["agreement"]
    assert "sees no edges" in said(row("gcn", 80.1, 10), agreeing, row("majority", 50))


def test_labels_alone_are_as_good():
    words = said(row("gcn", 80.1, 10), row("label-propagation", 80.0, 0.1), row("mlp", 60), row("majority", 50))
    assert words.startswith("Take label-propagation")
    assert "needs no training" in words


def test_the_cheapest_of_those_level_with_the_best():
    words = said(row("hgde", 80.1, 10), row("gcn", 80.0, 1), row("mlp", 60), row("majority", 50))
    assert words.startswith("Take gcn")
    assert "hgde (80.1" in words


def test_the_best_is_the_cheapest_of_those_level_with_it():
    words = said(row("hgde", 80.1, 1), row("gcn", 80.0, 10), row("mlp", 60), row("majority", 50))
    assert words.startswith("Take hgde (80.1")
    assert words.endswith("the best, and faster than what is not distinguishable from it (gcn).")


def test_curvature_pays():
    words = said(row("hgde", 85, 10), row("hgde-flat", 80, 10), row("gcn", 80, 1), row("mlp", 60))
    assert words.startswith("Take hgde (85.0")
    assert "ahead of all others" in words
    assert "curvature pays (+5.0" in words


def test_curvature_makes_no_difference():
    words = said(row("hgde", 80.1, 10), row("hgde-flat", 80, 9), row("mlp", 60))
    assert words.startswith("Take hgde-flat")
    assert "curvature makes no difference" in words


def test_curvature_costs():
    assert "curvature costs (-5.0" in said(row("hgde", 75, 10), row("hgde-flat", 80, 10), row("mlp", 60))


def test_smaller_errors_are_better():
    rows = [row("hgde", 1.0, spread=0.01), row("mlp", 2.0, spread=0.01)]
    for entry in rows:
        entry.metric = "rmse"
    ranked = rank_rows(rows)
    assert [entry.name for entry in ranked] == ["hgde", "mlp"]
    assert advise(ranked).startswith("Take hgde")


def test_few_runs_do_not_make_everything_level():
    """With two runs a t-test is sure of nothing; the difference of 22 points is not level all the same."""
    assert said(row("gcn", 88, runs=2), row("majority", 66, runs=2)).startswith("Take gcn")
