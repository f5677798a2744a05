"""Finished runs as one row of a comparison."""

import pytest

from hgde.experiments.jobs import Done, Job
from hgde.experiments.systems import find_system
from hgde.experiments.table import make_row


def finished(split, **scores):
    job = Job("cell/gcn", f"split-{split}", "job_kinds:echo", {"data": {"split": split}, "run": {"seed": 0}})
    costs = {"parameters": 10 + split, "epoch_ms": 1.0 + split, "seconds": 2.0, "peak_mib": 3.0}
    return Done(job, {"metric": "accuracy", "test": scores, "sizes": {"train": 10, "test": 5}, **costs})


@pytest.mark.parametrize("first", [0, 1], ids=["the first run has it", "the first run lacks it"])
def test_a_score_that_only_some_runs_have_is_left_out(first):
    """Binary F1 exists for the splits whose test part happens to hold two classes."""
    runs = [finished(0, accuracy=0.5, loss=1.0, macro_f1=0.2, binary_f1=0.9), finished(1, accuracy=0.7, macro_f1=0.4)]
    row = make_row(find_system("gcn"), runs if first == 0 else runs[::-1], expected=2)
    assert row.scores == {(0, 0): pytest.approx(50), (1, 0): pytest.approx(70)}
    assert row.also == {"macro_f1": pytest.approx(0.3)}
    assert (row.parameters, row.epoch_ms, row.test_per_train) == (11, 1.5, 0.5)


def test_a_run_that_failed_is_told_apart_from_those_that_ended():
    failed = Done(Job("cell/gcn", "split-1", "job_kinds:echo", {}), None, "out of memory")
    row = make_row(find_system("gcn"), [finished(0, accuracy=0.5), failed], expected=2)
    assert row.failures == ["out of memory"]
    assert (row.spread.count, row.expected) == (1, 2)
