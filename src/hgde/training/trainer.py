"""Full-batch training with early stopping, resumable at any moment to the very same result."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from hgde import randomness
from hgde.geometry import count_projections
from hgde.solvers import InputError
from hgde.tasks import Learner, Problem, Scores
from hgde.tasks.metrics import VALUES
from hgde.training import checkpoint
from hgde.training.optimisers import Optimisers
from hgde.training.settings import TrainingSettings

MOST_SECONDS_LOST = 30.0
"""A run whose epochs are slow is kept more often than its settings ask for."""


class TrainingError(RuntimeError):
    """Training that cannot go on; the message says why and what to try."""


@dataclass
class Epoch:
    """What happened in one epoch."""

    number: int
    loss: float
    score: float
    validation_loss: float
    curvature: float
    projected: int
    is_best: bool
    predictions: Tensor = field(repr=False)
    """The model's predictions for the validation part."""


@dataclass
class Outcome:
    """The result of one seed."""

    seed: int
    best_epoch: int
    epochs: int
    validation: Scores
    test: Scores
    curvatures: dict[str, float]
    projected: int
    seconds: float
    epoch_ms: float
    peak_mib: float
    history: list[dict[str, float]] = field(repr=False)


@dataclass
class _Progress:
    """How far a run has come; with the tensors of the checkpoint, everything needed to go on."""

    epoch: int = 0
    best_epoch: int = 0
    best_gain: float = -math.inf
    best_loss: float = math.inf
    smoothed: float = 0.0
    projected: int = 0
    seconds: float = 0.0
    epoch_ms: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)


def rank(gain: float, loss: float, keep: str) -> tuple[float, float]:
    """What makes an epoch better: its score, then its loss (``keep="score"``), or its loss, then its score."""
    return (gain, -loss) if keep == "score" else (-loss, gain)


Weights = tuple[Tensor, ...] | list[Tensor]


def running_mean(share: float) -> Callable[[Weights, Weights, Tensor | int], None]:
    """How an average of weights takes in those of an epoch: it keeps ``min(share, (1 + n) / (10 + n))`` after ``n``.

    The first epochs are soon forgotten, so that an average can be scored from the beginning.
    """

    @torch.no_grad()
    def update(averages: Weights, weights: Weights, count: Tensor | int) -> None:
        known = int(count)
        kept = min(share, (1 + known) / (10 + known))
        for average, weight in zip(averages, weights, strict=True):
            average.lerp_(weight.to(average.dtype), 1 - kept)

    return update


class Trainer:
    """Trains one learner on one problem for one seed.

    Args:
        generator: where dropout and negatives come from; the initial weights were drawn from it as well.
        path: the file of the checkpoint; ``None`` keeps nothing on disk.
        checkpoint_every: epochs between two checkpoints.
    """

    def __init__(
        self,
        learner: Learner,
        problem: Problem,
        settings: TrainingSettings,
        seed: int,
        generator: torch.Generator,
        path: Path | None = None,
        checkpoint_every: int = 50,
    ) -> None:
        self.learner, self.problem, self.settings, self.seed = learner, problem, settings, seed
        self.task, self.generator, self.checkpoint_every = problem.task, generator, checkpoint_every
        self.optimisers = Optimisers(learner, settings)
        self.idle = dict(self.optimisers.idle)
        """Settings that cannot act on this learner and task, each with the reason."""
        if self.task.kind == VALUES:
            self.idle["calibrate"] = "the task predicts numbers, not probabilities"
        self.path = path
        self.is_started = False
        self.averaged: AveragedModel | None = None
        self.best: dict[str, Tensor] = {}
        self.progress = _Progress()
        self._modules: list[nn.Module] = []
        self._times: list[float] = []

    def fit(self, resume: bool = False, on_epoch: Callable[[Epoch], None] | None = None) -> Outcome:
        """Train until the epochs or the patience run out, then score the best epoch's weights on the test part."""
        self.start(resume)
        self.advance(self.settings.epochs, on_epoch)
        return self.finish()

    def start(self, resume: bool = False) -> None:
        """Make ready for the first epoch, or go back to where a checkpoint was left."""
        self.is_started = True
        self._prepare_model()
        if self.settings.averaging > 0:
            # A mean of points of the ball is a point of the ball, so points may be averaged like anything else.
            self.averaged = AveragedModel(self.learner, multi_avg_fn=running_mean(self.settings.averaging))
            self.averaged.eval()
        self._modules = [*self.learner.modules()]
        if resume and self.path is not None and self.path.exists():
            self._restore()
        if not self.optimisers.parts and not self.best:
            self._validate(0.0, 0)  # nothing to train: a model that only spreads labels

    def _prepare_model(self) -> None:
        self.learner.observe(self.problem.graph, self.problem.parts["train"])

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to train, or the epochs or the patience have run out."""
        waited = self.progress.epoch - self.progress.best_epoch
        return (
            not self.optimisers.parts or self.progress.epoch >= self.settings.epochs or waited >= self.settings.patience
        )

    def advance(self, until: int, on_epoch: Callable[[Epoch], None] | None = None) -> None:
        """Train on to an epoch. Stopping in between and going on gives the very same result."""
        settings, progress = self.settings, self.progress
        started = time.perf_counter() - progress.seconds
        saved, last_saved = time.perf_counter(), progress.epoch
        while not self.is_done and progress.epoch < until:
            began = time.perf_counter()
            # Validation falls on multiples, whatever epoch a run was stopped at before.
            due = settings.validate_every - progress.epoch % settings.validate_every
            count = min(due, settings.epochs - progress.epoch)
            trained = [self._train_epoch() for _ in range(count)]
            self._times.append((time.perf_counter() - began) / count)
            record = self._validate(trained[-1][0], sum(projected for _, projected in trained))
            progress.seconds = time.perf_counter() - started
            is_due = (
                progress.epoch - last_saved >= self.checkpoint_every or time.perf_counter() - saved > MOST_SECONDS_LOST
            )
            if self.path is not None and is_due:
                self._save()
                saved, last_saved = time.perf_counter(), progress.epoch
            if on_epoch is not None:
                on_epoch(record)

    def finish(self) -> Outcome:
        """Take the best epoch's weights, calibrate them on the validation part, and score them on the test part."""
        progress = self.progress
        if self._times:
            progress.epoch_ms = 1000 * float(torch.tensor(self._times).median())
        if self.path is not None:
            self._save()  # before the best weights are put in: a run with more epochs goes on from the last ones
        self.learner.load_state_dict(self.best)
        self.learner.eval()
        self.learner.model.release()
        with torch.no_grad():
            if self.settings.calibrate:
                self._calibrate()
            validation = self._scores("val")
            test = self._scores("test")
        return Outcome(
            seed=self.seed,
            best_epoch=progress.best_epoch,
            epochs=progress.epoch,
            validation=validation,
            test=test,
            curvatures=self.learner.model.curvatures(),
            projected=progress.projected,
            seconds=progress.seconds,
            epoch_ms=progress.epoch_ms,
            peak_mib=peak_memory_mib(),
            history=progress.history,
        )

    def _calibrate(self) -> None:
        """Divide log-odds by the temperature under which the validation part is most likely."""
        part = self.problem.parts["val"]
        predictions = self._predictions(self.learner, "val")
        self.learner.temperature.fill_(self.task.temperature(predictions, part.truth))
        self.best["temperature"] = self.learner.temperature.clone()

    def _scores(self, name: str) -> Scores:
        return self.task.scores(self._predictions(self.learner, name), self.problem.parts[name].truth)

    def _predictions(self, learner: Learner, name: str) -> Tensor:
        """What a learner says of the items of a part."""
        return learner.predict(self._outputs(learner), self.problem.parts[name].items, self.problem.graph)

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        with randomness.use(self.generator, reroute=self.learner.model.reroutes):
            yield

    def _train_epoch(self) -> tuple[float, int]:
        _set_training(self._modules, True)
        self.optimisers.zero_grad()
        with count_projections() as counter, self._own_randomness():
            value = self._backward()
            if self.settings.clip is not None:
                self.optimisers.clip(self.settings.clip)
            self.optimisers.step(self.progress.epoch)
        if self.averaged is not None:
            self.averaged.update_parameters(self.learner)
        self.progress.epoch += 1
        if not math.isfinite(value):
            raise self._diverged(f"the loss became {value}")
        return value, counter.total

    def _backward(self) -> float:
        """The training loss, its gradient left with the parameters."""
        try:
            loss = self.task.loss(self.learner, self.problem)
        except InputError as error:  # weights that an overflowing gradient has spoilt
            raise self._diverged(str(error)) from None
        loss.backward()
        return float(loss.detach())

    def _diverged(self, what: str) -> TrainingError:
        return TrainingError(
            f"{what} after {self.progress.epoch} epochs (curvatures {self.learner.model.curvatures()}). "
            "Try a smaller learning rate, dtype float64, or a fixed curvature"
        )

    def _scored(self) -> Learner:
        """The learner that is validated, kept and tested: the average, where there is one."""
        if self.averaged is None:
            return self.learner
        assert isinstance(self.averaged.module, Learner)
        return self.averaged.module

    def _outputs(self, learner: Learner) -> Tensor:
        try:
            outputs = learner.outputs(self.problem.inputs, self.problem.graph)
        except InputError as error:
            raise self._diverged(str(error)) from None
        if not bool(torch.isfinite(outputs).all()):
            raise self._diverged("the model's output became infinite or undefined")
        return outputs

    @torch.no_grad()
    def _validate(self, loss: float, projected: int) -> Epoch:
        learner = self._scored()
        _set_training(self._modules, False)
        progress, task, part = self.progress, self.task, self.problem.parts["val"]
        predictions = self._predictions(learner, "val")
        scores = task.scores(predictions, part.truth, names=())
        score, validation_loss = scores[task.metric.name], scores["loss"]
        progress.projected += projected
        curvature = learner.model.curvatures().get("diffusion", 0.0)
        progress.history.append(
            {
                "epoch": progress.epoch,
                "loss": loss,
                "score": score,
                "validation_loss": validation_loss,
                "curvature": curvature,
                "projected": projected,
            }
        )
        mean = self.settings.smoothing if len(progress.history) > 1 else 0.0
        progress.smoothed = mean * progress.smoothed + (1 - mean) * task.gain(predictions, part.truth, scores)
        keep = self.settings.keep
        is_best = rank(progress.smoothed, validation_loss, keep) > rank(progress.best_gain, progress.best_loss, keep)
        if is_best or not self.best:
            progress.best_epoch, progress.best_loss = progress.epoch, validation_loss
            progress.best_gain = progress.smoothed
            self.best = {name: value.detach().clone() for name, value in learner.state_dict().items()}
        return Epoch(progress.epoch, loss, score, validation_loss, curvature, progress.projected, is_best, predictions)

    def _save(self) -> None:
        assert self.path is not None
        tensors, numbers = self.optimisers.state()
        tensors = {f"optimiser/{name}": value for name, value in tensors.items()}
        tensors |= {f"model/{name}": value for name, value in self.learner.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in self.best.items()}
        if self.averaged is not None:
            tensors |= {f"average/{name}": value for name, value in self.averaged.state_dict().items()}
        tensors["generator"] = self.generator.get_state()
        meta = {"numbers": numbers, "progress": vars(self.progress), "seed": self.seed}
        checkpoint.save(self.path, tensors, meta)

    def _restore(self) -> None:
        assert self.path is not None
        path = self.path
        tensors, meta = checkpoint.load(path)
        seed = checkpoint.read_field(path, meta, "seed", int)
        if seed != self.seed:
            raise checkpoint.CheckpointError(f"{path} is of seed {seed}, not {self.seed}")
        best = checkpoint.part_of(tensors, "best/")
        checkpoint.load_weights(self.learner, best, f"{path} (best)")  # a check: the last weights follow
        checkpoint.load_weights(self.learner, checkpoint.part_of(tensors, "model/"), f"{path} (model)")
        if self.averaged is not None:
            checkpoint.load_weights(self.averaged, checkpoint.part_of(tensors, "average/"), f"{path} (average)")
        numbers = checkpoint.read_field(path, meta, "numbers", dict)
        self.progress = _Progress(**_checked_progress(path, checkpoint.read_field(path, meta, "progress", dict)))
        try:
            self.optimisers.restore(checkpoint.part_of(tensors, "optimiser/"), numbers)
            self.generator.set_state(tensors["generator"])
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise checkpoint.CheckpointError(f"{path} is damaged: {type(error).__name__}: {error}") from None
        self.best = {name: value.to(self.generator.device) for name, value in best.items()}


def _set_training(modules: list[nn.Module], is_training: bool) -> None:
    """``train()`` or ``eval()`` of a network whose parts are known; torch would walk through it at every call."""
    for module in modules:
        if type(module).train is nn.Module.train:
            vars(module)["training"] = is_training
        else:
            module.train(is_training)


def _checked_progress(path: Path, stored: dict[str, Any]) -> dict[str, Any]:
    """The stored progress, each field there and of its type."""
    for name, usual in vars(_Progress()).items():
        value = stored.get(name)
        if not isinstance(value, int | float if isinstance(usual, float) else type(usual)):
            actual = type(value).__name__ if name in stored else "nothing"
            raise checkpoint.CheckpointError(
                f"{path} is damaged: field 'progress.{name}' should be {type(usual).__name__}, it is {actual}"
            )
    unknown = sorted(set(stored) - set(vars(_Progress())))
    if unknown:
        raise checkpoint.CheckpointError(f"{path} is damaged: field 'progress.{unknown[0]}' is not known")
    return stored


def peak_memory_mib() -> float:
    """Largest resident size of this process so far, MiB."""
    try:
        import resource
    except ImportError:  # not on Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
