"""What a report says, as plain values: everything but the title may be missing, and its part is then left out.

A report is made from arrays, so that any model and any way of training can have one:

>>> report = RunReport(title="Karate club", settings={"width": 16})
>>> report.title
'Karate club'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Score:
    """One score of a run beside those of others: the values over seeds, on one part of the data.

    With ``unit="%"`` the values are shares of one and shown in percent.
    """

    name: str
    values: Sequence[float]
    part: str = "test"
    unit: str = ""
    baselines: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """Spread over seeds with ``n - 1``; 0 for one seed."""
        return spread(self.values)


def spread(values: Sequence[float]) -> float:
    """Standard deviation with ``n - 1``; 0 where there are fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class History:
    """What was measured while training, one number per epoch; a series may be missing."""

    epochs: Sequence[int]
    loss: Sequence[float] | None = None
    validation_loss: Sequence[float] | None = None
    score: Sequence[float] | None = None
    score_name: str = "validation score"
    curvature: Mapping[str, Sequence[float]] = field(default_factory=dict)
    projected_points: Sequence[float] | None = None
    best_epoch: int | None = None


@dataclass(frozen=True)
class ClassScores:
    """A class's line of the table: precision, recall, F1 and how many nodes carry it."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class CalibrationBins:
    """Confidence against accuracy in bins, empty bins left out, with the expected calibration error."""

    confidence: Sequence[float]
    accuracy: Sequence[float]
    counts: Sequence[int]
    error: float


@dataclass(frozen=True)
class EnergyCurve:
    """Hyperbolic Dirichlet energy along the diffusion, one curve or several by name."""

    times: Sequence[float]
    curves: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Mistake:
    """A wrong prediction and what stands around it: neighbours as ``(id, label, prediction)``.

    A class has a ``confidence``; a number has an ``error`` instead, prediction minus truth.
    """

    node: str
    label: str
    prediction: str
    confidence: float | None
    neighbours: Sequence[tuple[str, str, str]] = ()
    degree: int = 0
    error: float | None = None


@dataclass(frozen=True)
class ValuePairs:
    """Numbers that were predicted: for each target its true and its predicted values."""

    series: Mapping[str, tuple[Sequence[float] | Array, Sequence[float] | Array]]


@dataclass(frozen=True)
class NodeWeights:
    """For every node the nodes that weigh most in its row: ``nodes [N, k]`` (-1: none) and ``values [N, k]``."""

    nodes: Array
    values: Array


@dataclass(frozen=True)
class DiskView:
    """Nodes in the unit disk at one or several diffusion times.

    ``positions [T, N, 2]`` with ``times [T]``; ``edges [2, M]``, each undirected edge once; ``labels`` and
    ``predictions`` ``[N]`` are class numbers, -1 for unknown; ``confidences`` and ``degrees`` ``[N]``.
    ``method`` and ``quality`` say how the disk was made and how true it is.
    """

    positions: Array
    times: Sequence[float] = (0.0,)
    edges: Array | None = None
    ids: Sequence[str] | None = None
    labels: Array | None = None
    predictions: Array | None = None
    confidences: Array | None = None
    degrees: Array | None = None
    class_names: Sequence[str] = ()
    local_weights: NodeWeights | None = None
    global_weights: NodeWeights | None = None
    method: str = ""
    quality: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = np.shape(self.positions)
        if len(shape) != 3 or shape[2] != 2 or shape[0] != len(self.times):
            raise ValueError(
                f"expected positions [times, nodes, 2] with {len(self.times)} times, got shape {shape}; "
                "a single picture is positions[None]"
            )
        if not np.all(np.einsum("tnk,tnk->tn", self.positions, self.positions) < 1.0):
            raise ValueError("expected points inside the unit disk; project or rescale them (by sqrt(c)) first")
        given = {"ids": self.ids, "labels": self.labels, "predictions": self.predictions}
        given |= {"confidences": self.confidences, "degrees": self.degrees}
        for name, values in given.items():
            if values is not None and len(values) != shape[1]:
                raise ValueError(f"expected one of {name} per node, {shape[1]}, got {len(values)}")


@dataclass(frozen=True)
class RunReport:
    """One run: what went in, what came out, what to doubt, and how to do it again."""

    title: str
    summary: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)
    scores: Sequence[Score] = ()
    history: History | None = None
    confusion: Array | None = None
    class_names: Sequence[str] = ()
    classes: Sequence[ClassScores] = ()
    calibration: CalibrationBins | None = None
    values: ValuePairs | None = None
    energy: EnergyCurve | None = None
    disk: DiskView | None = None
    mistakes: Sequence[Mistake] = ()
    choice: Sequence[str] = ()
    """How the settings were chosen, a line per step."""
    warnings: Sequence[str] = ()
    reproduce: Sequence[str] = ()


@dataclass(frozen=True)
class System:
    """A system of a comparison: scores over the same seeds as the others, what it costs, its difference to the first.

    ``difference`` is the mean paired difference to the reference system with the half width of its 95 % interval.
    """

    name: str
    scores: Sequence[float]
    difference: tuple[float, float] | None = None
    parameters: int | None = None
    seconds: float | None = None

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))

    @property
    def std(self) -> float:
        return spread(self.scores)


@dataclass(frozen=True)
class ComparisonReport:
    """Systems on the same data and splits, with one sentence of advice."""

    title: str
    systems: Sequence[System]
    score_name: str = "score"
    advice: str = ""
    summary: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    reproduce: Sequence[str] = ()


@dataclass(frozen=True)
class Trial:
    """One setting that was tried: its validation score (None: it failed or was stopped) and its time."""

    number: int
    settings: Mapping[str, Any]
    score: float | None
    seconds: float | None = None
    state: str = "complete"


@dataclass(frozen=True)
class TuningReport:
    """The trials of a search, what mattered, and what was chosen."""

    title: str
    trials: Sequence[Trial]
    importances: Mapping[str, float] = field(default_factory=dict)
    best: Mapping[str, Any] = field(default_factory=dict)
    score_name: str = "validation score"
    advice: str = ""
    summary: str = ""
    warnings: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    reproduce: Sequence[str] = ()


Report = RunReport | ComparisonReport | TuningReport
