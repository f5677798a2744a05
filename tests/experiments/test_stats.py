"""Means, paired tests, verdicts: against scipy and by hand."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from hgde.experiments.stats import (
    DIFFERENT,
    EQUAL,
    NOT_REACHED,
    REACHED,
    UNDECIDED,
    WITHIN,
    Spread,
    compare_again,
    holm,
    paired_test,
    t_test,
    verdict,
)


def places(values, per_split=1):
    return {(k // per_split, k % per_split): float(value) for k, value in enumerate(values)}


@pytest.mark.parametrize("seed", range(5))
def test_paired_test_is_scipys_where_nothing_is_corrected(seed):
    random = np.random.default_rng(seed)
    one, other = random.normal(80, 2, 7), random.normal(79.5, 2, 7)
    ours = paired_test(places(one), places(other))
    theirs = scipy_stats.ttest_rel(one, other)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert ours.difference == pytest.approx((one - other).mean())


def test_correction_for_overlapping_training_parts_makes_it_less_sure():
    values = [0.5, 1.0, 0.8, 1.2, 0.9]
    plain, corrected = t_test(values), t_test(values, 0.2 / 0.6)
    assert corrected.error == pytest.approx(plain.error * math.sqrt(1 + 5 * 0.2 / 0.6))
    assert corrected.p > plain.p


def test_seeds_on_one_split_are_not_independent():
    """Fifty runs on ten splits have the standard error of ten means."""
    random = np.random.default_rng(0)
    scores = {
        (split, seed): float(value) for split in range(10) for seed, value in enumerate(random.normal(split, 0.1, 5))
    }
    spread = Spread.of(scores)
    means = [np.mean([scores[split, seed] for seed in range(5)]) for split in range(10)]
    assert spread.count == 50
    assert spread.error == pytest.approx(np.std(means, ddof=1) / math.sqrt(10))
    assert paired_test(scores, dict.fromkeys(scores, 0.0)).count == 10


def test_only_shared_places_are_compared():
    test = paired_test({(0, 0): 1.0, (1, 1): 2.0, (2, 2): 9.0}, {(0, 0): 0.0, (1, 1): 0.5})
    assert test.count == 2
    assert test.difference == pytest.approx(1.25)


def test_equal_differences_are_tested_by_their_signs():
    ours, theirs = {(k, k): 80.0 + 1 / 95 for k in range(3)}, {(k, k): 80.0 for k in range(3)}
    assert paired_test(ours, theirs).p == pytest.approx(0.25)


def test_equal_scores_are_not_told_apart():
    assert paired_test(places([1, 2, 3]), places([1, 2, 3])).p == 1.0


def test_holm_against_hand_computed_values():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    adjusted = holm([0.01, math.nan, 0.04])
    assert adjusted[0] == pytest.approx(0.02)
    assert math.isnan(adjusted[1])


@pytest.mark.parametrize(
    ("mean", "error", "said"),
    [
        (85.0, 0.1, REACHED),
        (84.5, 0.1, UNDECIDED),
        (84.3, 0.3, UNDECIDED),
        (83.5, 0.1, NOT_REACHED),
        (90.0, math.nan, UNDECIDED),
    ],
)
def test_verdicts_at_two_standard_errors(mean, error, said):
    """Published 84.4 with deviation 0.7 has an error of 0.22 itself."""
    assert verdict(Spread(10, mean, 0.5, error), (84.4, 0.7)) == said


def test_no_verdict_without_runs():
    assert verdict(Spread.of({}), (84.4, 0.7)) == ""


def test_a_run_done_again_is_equal_within_or_different():
    stored = places([80.0, 81.0, 82.0, 81.0])
    assert compare_again(80.0, stored, (0, 0))[0] == EQUAL
    said, (low, high) = compare_again(81.5, stored, (0, 0))
    assert said == WITHIN
    half = scipy_stats.t.ppf(0.975, 3) * np.std([80, 81, 82, 81], ddof=1) * math.sqrt(1.25)
    assert (low, high) == pytest.approx((81 - half, 81 + half))
    assert compare_again(70.0, stored, (0, 0))[0] == DIFFERENT


def test_a_single_stored_run_is_equal_or_different():
    assert compare_again(80.0, {(0, 0): 80.0}, (0, 0))[0] == EQUAL
    assert compare_again(80.1, {(0, 0): 80.0}, (0, 0))[0] == DIFFERENT


def test_two_stored_runs_do_not_let_everything_pass():
    stored = places([80.0, 81.0])
    assert compare_again(81.9, stored, (0, 0)) == (WITHIN, (79.0, 82.0))
    assert compare_again(82.1, stored, (0, 0))[0] == DIFFERENT
