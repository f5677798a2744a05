"""Means over runs with their standard errors, paired tests over the same splits, and verdicts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Place = tuple[int, int]
"""Split and seed of a run."""

PUBLISHED_RUNS = 10
"""Runs behind a published mean, where the paper does not say."""


@dataclass(frozen=True)
class Spread:
    """Scores of several runs: mean, sample standard deviation and standard error of the mean.

    Runs on the same split are not independent: where there are several splits, the standard error is that of the
    means of the splits.
    """

    count: int
    mean: float
    std: float
    error: float

    @classmethod
    def of(cls, scores: Mapping[Place, float]) -> Spread:
        if not scores:
            return cls(0, math.nan, math.nan, math.nan)
        values = list(scores.values())
        groups = list(by_split(scores).values())
        independent = [statistics.fmean(group) for group in groups] if len(groups) > 1 else values
        std = statistics.stdev(values) if len(values) > 1 else 0.0
        error = statistics.stdev(independent) / math.sqrt(len(independent)) if len(independent) > 1 else math.nan
        return cls(len(values), statistics.fmean(values), std, error)


def by_split(scores: Mapping[Place, float]) -> dict[int, list[float]]:
    groups: dict[int, list[float]] = {}
    for (split, _), score in scores.items():
        groups.setdefault(split, []).append(score)
    return groups


@dataclass(frozen=True)
class Paired:
    """One system against another on the same splits and seeds: mean difference, its standard error, two-sided p."""

    count: int
    difference: float
    error: float
    p: float


def paired_test(one: Mapping[Place, float], other: Mapping[Place, float], test_per_train: float = 0.0) -> Paired:
    """Student's paired t-test of ``one - other``, over splits where there are several, else over seeds.

    Random splits of the same nodes share training nodes, which makes plain t far too sure: with ``test_per_train``, the
    size of the test part over that of the training part, the variance is multiplied by ``1 + n test_per_train``
    (Nadeau and Bengio, Inference for the generalization error, 2003). 0 gives the plain test.
    """
    shared = [place for place in one if place in other]
    gaps = {place: one[place] - other[place] for place in shared}
    groups = by_split(gaps)
    values = [statistics.fmean(group) for group in groups.values()] if len(groups) > 1 else list(gaps.values())
    correction = test_per_train if len(groups) > 1 else 0.0
    return t_test(values, correction)


def t_test(values: Sequence[float], correction: float = 0.0) -> Paired:
    """Whether the mean of some differences is zero."""
    from scipy.special import stdtr

    count = len(values)
    if count == 0:
        return Paired(0, math.nan, math.nan, math.nan)
    mean = statistics.fmean(values)
    if count < 2:
        return Paired(count, mean, math.nan, math.nan)
    error = math.sqrt(statistics.variance(values) * (1 / count + correction))
    if error <= 1e-9 * abs(mean):
        # A few equal differences (one test item more, three times) have no spread to test by: their signs alone count.
        return Paired(count, mean, 0.0, 1.0 if mean == 0 else 2.0 ** (1 - count))
    return Paired(count, mean, error, float(2 * stdtr(count - 1, -abs(mean) / error)))


def holm(ps: Sequence[float]) -> list[float]:
    """p-values of several tests at once, made larger by Holm's rule; not-a-number stays so."""
    order = sorted((p, place) for place, p in enumerate(ps) if not math.isnan(p))
    adjusted = list(ps)
    largest = 0.0
    for rank, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        adjusted[place] = largest
    return adjusted


REACHED, NOT_REACHED, UNDECIDED = "reached", "not reached", "undecided"


def verdict(ours: Spread, published: tuple[float, float | None]) -> str:
    """Whether a published mean is reached, at two standard errors of the difference.

    The published mean has an error of its own: its standard deviation over the root of :data:`PUBLISHED_RUNS` runs.
    """
    if ours.count == 0:
        return ""
    mean, std = published
    if math.isnan(ours.error):
        return UNDECIDED
    error = math.hypot(ours.error, (std or 0.0) / math.sqrt(PUBLISHED_RUNS))
    gap = ours.mean - mean
    if gap >= 2 * error:
        return REACHED
    return NOT_REACHED if gap <= -2 * error else UNDECIDED


EQUAL, WITHIN, DIFFERENT = "equal", "within the spread over seeds", "different"


def compare_again(again: float, stored: Mapping[Place, float], place: Place) -> tuple[str, tuple[float, float]]:
    """Whether a run done again agrees with the stored runs of its cell, and the interval that decides.

    Equal: the very same score. Within: inside the interval in which a further run is expected with 95 % confidence,
    ``mean +- t s sqrt(1 + 1/n)`` of the stored runs (of its own split where that has at least three). With fewer than
    three, t would let anything pass: the range of the runs then, widened by itself on both sides.
    """
    from scipy.special import stdtrit

    own = by_split(stored).get(place[0], [])
    values = own if len(own) >= 3 else list(stored.values())
    low, high = min(values), max(values)
    interval = (2 * low - high, 2 * high - low)
    if len(values) > 2:
        count, mean = len(values), statistics.fmean(values)
        half = float(stdtrit(count - 1, 0.975)) * statistics.stdev(values) * math.sqrt(1 + 1 / count)
        interval = (mean - half, mean + half)
    if place in stored and again == stored[place]:
        return EQUAL, interval
    return (WITHIN if interval[0] <= again <= interval[1] else DIFFERENT), interval
