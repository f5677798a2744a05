"""What jobs do, in the process they were given to: train, try settings, work out a free baseline, measure."""

from __future__ import annotations

import json
import logging
import math
import statistics
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from hgde.data import Dataset, open_dataset
from hgde.experiments.jobs import Done, Job
from hgde.experiments.meter import PeakMeter
from hgde.graph.measures.distortion import graph_distortion
from hgde.pipeline import Fitted, Prepared, Reporter, Settings, fit, make_settings, prepare, versions
from hgde.pipeline.presets import Choice, with_preset
from hgde.pipeline.settings import restore_settings
from hgde.sections import overlay
from hgde.tasks import Part, Problem
from hgde.training.cross_fitting import cross_fitted
from hgde.training.settings import TrainingSettings
from hgde.training.trainer import Epoch

logger = logging.getLogger(__name__)
Result = dict[str, Any]


class OutOfTime(RuntimeError):
    """Work that was given so many seconds and needs more."""


class _Settled(Exception):
    """A preset has been chosen, which is all that was wanted."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Pruned(RuntimeError):
    """A trial that is behind the middle of the others."""


class Length(NamedTuple):
    """How long a training may be: epochs, and epochs without improvement.

    >>> Length(200, 50).within(TrainingSettings(epochs=500, patience=20))
    {'epochs': 200, 'patience': 20}
    """

    epochs: int
    patience: int

    def within(self, training: TrainingSettings) -> dict[str, int]:
        """What a training keeps of its own length."""
        return {"epochs": min(self.epochs, training.epochs), "patience": min(self.patience, training.patience)}


def do(job: Job) -> Done:
    """The outcome of a job; whatever goes wrong is its failure, in words."""
    began = time.perf_counter()
    try:
        result, failure = _find(job.work)(job), None
    except OutOfTime as error:
        result, failure = None, str(error)
    except Exception as error:  # a failed run is a result of its own: the others go on
        own = type(error).__module__.startswith("hgde.")
        if not own:
            logger.warning("%s failed: %s", job.name, traceback.format_exc())
        words = str(error).strip() or type(error).__name__
        result, failure = None, words if own else f"{type(error).__name__}: {words}"
    return Done(job, result, failure, time.perf_counter() - began)


def _find(work: str) -> Callable[[Job], Result]:
    if work in WORK:
        return WORK[work]
    module, _, name = work.partition(":")
    found: Callable[[Job], Result] = getattr(import_module(module), name)
    return found


class _Clock(Reporter):
    """Ends a run that takes longer than it was given."""

    def __init__(self, seconds: float | None) -> None:
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.seconds = seconds

    def epoch_done(self, epoch: Epoch) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTime(f"not done after {self.seconds:.0f} s (epoch {epoch.number})")


class _Trajectory(_Clock):
    """What the model said of the validation part, epoch by epoch; gives up where it is behind the bars.

    ``bars`` maps epochs to the score that the middle of earlier trials had reached by then.
    """

    def __init__(self, seconds: float | None, bars: Mapping[str, float], gain: Callable[[float], float]) -> None:
        super().__init__(seconds)
        self.predictions: list[Tensor] = []
        self.bars, self.gain = {int(epoch): bar for epoch, bar in bars.items()}, gain
        self.best = float("-inf")
        self.reached: dict[str, float] = {}

    def epoch_done(self, epoch: Epoch) -> None:
        self.predictions.append(epoch.predictions.cpu())
        self.best = max(self.best, self.gain(epoch.score))
        if epoch.number in CHECKPOINTS:
            self.reached[str(epoch.number)] = self.best
            if self.best < self.bars.get(epoch.number, float("-inf")):
                raise Pruned(f"behind the median of earlier trials after {epoch.number} epochs")
        super().epoch_done(epoch)


CHECKPOINTS = (60, 150)
"""Epochs at which a trial is compared with earlier ones; late enough for small learning rates to have got on."""


def train(job: Job) -> Result:
    """One run: scores of validation and test part, what it took, and all that its numbers depend on."""
    settings = settings_for(job.settings)
    prepared = _prepared(settings)
    meter = PeakMeter()
    result = fit(settings, dataset=prepared.dataset, problem=prepared.problem, reporter=_Clock(job.seconds))
    outcome = result.summary.outcomes[0]
    kept = {name: value for name, value in asdict(outcome).items() if name not in ("history", "seed")}
    kept |= {"peak_mib": round(meter.read(), 1), **_facts_of_run(prepared)}
    kept["parameters"] = sum(p.numel() for p in result.models[0].learner.parameters())
    kept["distortion"] = _distortion(result.models[0])
    kept["metric"], kept["preset"] = result.summary.metric.name, result.summary.settings.preset
    return kept


def _distortion(fitted: Fitted) -> float | None:
    """Of the embedding against hops along the graph; None where a model has no space or the graph no edges."""
    model = fitted.learner.model
    try:
        points, space = fitted.embed(), model.manifold
    except NotImplementedError:
        return None
    graph = fitted.training_data().dataset.graph
    found = graph_distortion(graph, lambda u, v: space.dist(points[u], points[v]))
    return found if math.isfinite(found) else None


def cost(job: Job) -> Result:
    """A run measured after a short one of the same kind, which loads libraries and compiles kernels."""
    short = {**job.settings, "training": {**job.settings.get("training", {}), "epochs": 3}}
    fit(settings_for(short))
    return train(job)


def trial(job: Job) -> Result:
    """Settings tried out: the mean over ``folds`` (split and seed) of the cross-fitted validation score.

    The trainer is given a test part without a single item: no test label can be read, let alone be chosen by.
    """
    scores: list[float] = []
    epochs: list[int] = []
    reached: dict[str, float] = {}
    stopped: str | None = None
    is_pruned = False
    presets: list[str] = []
    began, ms = time.monotonic(), 0.0
    for number, (split, seed) in enumerate(job.more["folds"]):
        settings = settings_for(job.settings).replace({"data.split": split, "run.seed": seed})
        prepared = _prepared(settings)
        problem = without_test(prepared.problem)
        is_raced = settings.preset == "auto"
        settings = _no_longer_than(_with_chosen_preset(settings, prepared, problem), job.more.get("length"))
        presets += [settings.preset] if is_raced else []
        task, part = problem.task, problem.parts["val"]
        left = None if job.seconds is None else max(1.0, job.seconds - (time.monotonic() - began))
        trajectory = _Trajectory(left, job.more.get("bars", {}) if number == 0 else {}, task.metric.gain)
        try:
            outcome = fit(settings, dataset=prepared.dataset, problem=problem, reporter=trajectory).summary.outcomes[0]
            ms = outcome.epoch_ms
        except (Pruned, OutOfTime) as error:
            stopped, is_pruned = str(error), isinstance(error, Pruned)
            if not trajectory.predictions:
                raise OutOfTime(stopped) from None
        if trajectory.predictions:
            scores.append(cross_fitted(task, trajectory.predictions, part.truth.cpu(), settings.training.keep))
        else:  # nothing was trained: there are no epochs to choose among
            scores.append(task.metric.gain(outcome.validation[task.metric.name]))
        epochs.append(len(trajectory.predictions) * settings.training.validate_every)
        reached = trajectory.reached if number == 0 else reached
        if stopped is not None:
            break
    ms = ms or 1000 * (time.monotonic() - began) / max(sum(epochs), 1)
    found: Result = {"score": statistics.fmean(scores), "scores": scores, "epochs": epochs, "epoch_ms": round(ms, 2)}
    found["preset"] = statistics.mode(presets) if presets else None
    return found | {"reached": reached, "stopped": stopped, "pruned": is_pruned, "versions": versions()}


def _no_longer_than(settings: Settings, length: Sequence[int] | None) -> Settings:
    """The settings with at most so many epochs, and epochs without improvement."""
    if length is None:
        return settings
    if settings.preset not in ("auto", "none"):  # a limit below that of the preset must be laid over it
        training = with_preset(settings, settings.preset).training
        return settings.replace({"training": Length(*length).within(training)})
    # Not a user's wish, to be refused where nothing is trained.
    limits = {"training": Length(*length).within(settings.training)}
    return restore_settings(overlay(settings.to_dict(), limits), settings.given)


class _UntilSettled(Reporter):
    def preset_chosen(self, choice: Choice) -> None:
        raise _Settled(choice.chosen)

    def seed_started(self, seed: int, settings: Settings) -> None:
        raise _Settled(settings.preset)


def _with_chosen_preset(settings: Settings, prepared: Prepared, problem: Problem) -> Settings:
    """The settings with the preset that the model chooses: its training is then followed from the first epoch on."""
    if settings.preset != "auto":
        return settings
    try:
        fit(settings, dataset=prepared.dataset, problem=problem, reporter=_UntilSettled())
    except _Settled as settled:
        chosen = settled.name
    return settings.replace({"preset": "none" if chosen == "auto" else chosen})


def without_test(problem: Problem) -> Problem:
    """The problem with nothing in its test part."""
    part = problem.parts["test"]
    empty = Part(part.items[..., :0], part.truth[:0])
    return replace(problem, parts={**problem.parts, "test": empty})


def free(job: Job) -> Result:
    """A baseline without a model, on the same split and inputs as everything else."""
    from hgde.tasks.baselines import BASELINES

    prepared = _prepared(settings_for(job.settings))
    problem = prepared.problem
    meter, began = PeakMeter(), time.perf_counter()
    predictions = BASELINES.get(job.more["baseline"])(problem)
    spent = time.perf_counter() - began
    test = problem.parts["test"]
    scores = problem.task.scores(predictions["test"], test.truth)
    val = problem.parts["val"]
    validation = problem.task.scores(predictions["val"], val.truth)
    found: Result = {"metric": problem.task.metric.name, "validation": validation, "test": scores, "seconds": spent}
    found |= {"epoch_ms": 0.0, "peak_mib": round(meter.read(), 1), "parameters": 0}
    return found | _facts_of_run(prepared)


def facts(job: Job) -> Result:
    """What the graph itself says: sizes, homophily, hyperbolicity, kind of features."""
    from hgde.experiments.facts import graph_facts

    settings = settings_for(job.settings)
    return graph_facts(_prepared(settings), settings) | {"versions": versions()}


def settings_for(values: Mapping[str, Any]) -> Settings:
    """Settings of a job. Those spelt out (``preset = none``) are not a user's wish: what cannot act in them may stand.

    A published preset sets, say, a weight decay that this model on this data has no matrix for.
    """
    return restore_settings(values, {}) if values.get("preset") == "none" else make_settings(values)


WORK: dict[str, Callable[[Job], Result]] = {
    "train": train,
    "trial": trial,
    "free": free,
    "facts": facts,
    "cost": cost,
}

MOST_OPEN = 4
"""Data sets, and problems posed on them, that a process keeps: as many as there are cells at once."""
_opened: dict[str, Dataset] = {}
_posed: dict[str, Problem] = {}
T = TypeVar("T")


def _prepared(settings: Settings) -> Prepared:
    """Data, split and inputs; the last ones are kept, since jobs of a few cells come by turns."""
    data = settings.data.to_dict()
    name = json.dumps({key: value for key, value in data.items() if key not in ("split", "protocol")}, sort_keys=True)
    dataset = _kept(_opened, name, lambda: open_dataset(settings.data))
    question = json.dumps([data, settings.to_dict()["task"]], sort_keys=True)
    task = settings.task
    problem = _kept(_posed, question, lambda: task.entry.pose(dataset, task.options, settings.data))
    return prepare(settings, dataset, problem)


def _kept(shelf: dict[str, T], key: str, make: Callable[[], T]) -> T:
    """What is on the shelf under a key, or is made and put there; the one not asked for the longest makes room."""
    shelf[key] = shelf.pop(key) if key in shelf else make()
    if len(shelf) > MOST_OPEN:
        del shelf[next(iter(shelf))]
    return shelf[key]


def _facts_of_run(prepared: Prepared) -> Result:
    problem = prepared.problem
    return {
        "data_hash": prepared.dataset.hash[:16],
        "split_hash": problem.split_hash[:16],
        "sizes": {name: part.size for name, part in problem.parts.items()},
        "versions": versions(),
    }
