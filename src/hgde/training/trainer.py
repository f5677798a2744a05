"""Full-batch training with early stopping, resumable at any moment to the very same result."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from hgde.geometry import count_projections
from hgde.models import NodeModel
from hgde.settings import Settings
from hgde.solvers import InputError
from hgde.training import checkpoint
from hgde.training.optimisers import Optimisers
from hgde.training.tasks import Scores, Task

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
    pulled_back: int
    is_best: bool
    predictions: Tensor = field(repr=False)
    """What the model said of the validation part."""


@dataclass
class Outcome:
    """The result of one seed."""

    seed: int
    best_epoch: int
    epochs: int
    validation: Scores
    test: Scores
    curvatures: dict[str, float]
    pulled_back: int
    seconds: float
    epoch_ms: float
    peak_mib: float
    history: list[dict[str, float]] = field(repr=False)


@dataclass
class _Progress:
    """How far a run has come; with the tensors of the checkpoint, everything needed to go on."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    best_loss: float = math.inf
    validation: Scores = field(default_factory=dict)
    pulled_back: int = 0
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)


def seed_everything(seed: int) -> None:
    """Seed torch's generators, the only source of randomness of a run."""
    torch.manual_seed(seed)


def rank(scores: Scores, metric: str, keep: str) -> tuple[float, float]:
    """What makes an epoch better: its score, then its loss (``keep="score"``), or its loss, then its score."""
    score, loss = scores[metric], scores["loss"]
    return (score, -loss) if keep == "score" else (-loss, score)


class Trainer:
    """Trains one model on one task for one seed.

    Args:
        model: built after :func:`seed_everything`, so that the seed decides its start.
        folder: where the checkpoint goes; ``None`` keeps nothing on disk.
    """

    def __init__(self, model: NodeModel, task: Task, settings: Settings, seed: int, folder: Path | None = None) -> None:
        self.model, self.task, self.settings, self.seed = model, task, settings, seed
        self.optimisers = Optimisers(model, settings)
        self.path = None if folder is None else folder / "checkpoint.safetensors"
        self.averaged: AveragedModel | None = None
        self.best: dict[str, Tensor] = {}
        self.progress = _Progress()

    def fit(self, resume: bool = False, on_epoch: Callable[[Epoch], None] | None = None) -> Outcome:
        """Train until the epochs or the patience run out, then score the best epoch's weights on the test part."""
        self.model.prepare(self.task.graph)
        if self.settings.averaging > 0:
            # A mean of points of the ball is a point of the ball, so points may be averaged like anything else.
            self.averaged = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(self.settings.averaging))
        if resume and self.path is not None and self.path.exists():
            self._restore()
        settings, progress = self.settings, self.progress
        started = time.perf_counter() - progress.seconds
        times: list[float] = []
        saved, last_saved = time.perf_counter(), progress.epoch
        while progress.epoch < settings.epochs and progress.epoch - progress.best_epoch < settings.patience:
            began = time.perf_counter()
            count = min(settings.validate_every, settings.epochs - progress.epoch)
            trained = [self._train_epoch() for _ in range(count)]
            times.append((time.perf_counter() - began) / count)
            progress.epoch += count
            record = self._validate(trained[-1][0], sum(pulled_back for _, pulled_back in trained))
            progress.seconds = time.perf_counter() - started
            is_due = (
                progress.epoch - last_saved >= settings.checkpoint_every
                or time.perf_counter() - saved > MOST_SECONDS_LOST
            )
            if self.path is not None and is_due:
                self._save()
                saved, last_saved = time.perf_counter(), progress.epoch
            if on_epoch is not None:
                on_epoch(record)
        self.model.load_state_dict(self.best)
        self.model.eval()
        with torch.no_grad():
            test = self.task.test_scores(self.model, self.task.outputs(self.model))
        if self.path is not None:
            self._save()
        return Outcome(
            seed=self.seed,
            best_epoch=progress.best_epoch,
            epochs=progress.epoch,
            validation=progress.validation,
            test=test,
            curvatures=self.model.curvatures(),
            pulled_back=progress.pulled_back,
            seconds=progress.seconds,
            epoch_ms=1000 * float(torch.tensor(times).median()) if times else 0.0,
            peak_mib=peak_memory_mib(),
            history=progress.history,
        )

    def _train_epoch(self) -> tuple[float, int]:
        self.model.train()
        self.optimisers.zero_grad()
        with count_projections() as counter:
            try:
                loss = self.task.loss(self.model)
            except InputError as error:  # weights that an overflowing gradient has spoilt
                raise self._diverged(str(error)) from None
            loss.backward()
            if self.settings.clip is not None:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
            self.optimisers.step()
        if self.averaged is not None:
            self.averaged.update_parameters(self.model)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise self._diverged(f"the loss became {value}")
        return value, counter.total

    def _diverged(self, what: str) -> TrainingError:
        return TrainingError(
            f"{what} after {self.progress.epoch} epochs (curvatures {self.model.curvatures()}). "
            "Try a smaller learning rate, dtype float64, or a fixed curvature"
        )

    def _scored_model(self) -> NodeModel:
        """The model that is validated, kept and tested: the average, where there is one."""
        if self.averaged is None:
            return self.model
        assert isinstance(self.averaged.module, NodeModel)
        return self.averaged.module

    @torch.no_grad()
    def _validate(self, loss: float, pulled_back: int) -> Epoch:
        model = self._scored_model().eval()
        progress, task = self.progress, self.task
        try:
            outputs = task.outputs(model)
        except InputError as error:
            raise self._diverged(str(error)) from None
        if not bool(torch.isfinite(outputs).all()):
            raise self._diverged("the model's output became infinite or undefined")
        predictions = task.validation_predictions(model, outputs)
        scores = task.judge(predictions, task.val_labels)
        score, validation_loss = scores[task.metric], scores["loss"]
        progress.pulled_back += pulled_back
        progress.history.append({"loss": loss, "score": score, "validation_loss": validation_loss})
        best = {task.metric: progress.best_score, "loss": progress.best_loss}
        is_best = rank(scores, task.metric, self.settings.keep) > rank(best, task.metric, self.settings.keep)
        if is_best:
            progress.best_epoch, progress.best_score, progress.best_loss = progress.epoch, score, validation_loss
            progress.validation = scores
            self.best = {name: value.detach().clone() for name, value in model.state_dict().items()}
        curvature = model.curvatures().get("diffusion", 0.0)
        return Epoch(
            progress.epoch, loss, score, validation_loss, curvature, progress.pulled_back, is_best, predictions
        )

    def _save(self) -> None:
        assert self.path is not None
        tensors, numbers = self.optimisers.state()
        tensors = {f"optimiser/{name}": value for name, value in tensors.items()}
        tensors |= {f"model/{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in self.best.items()}
        if self.averaged is not None:
            tensors |= {f"average/{name}": value for name, value in self.averaged.state_dict().items()}
        tensors["rng"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["rng_cuda"] = torch.cuda.get_rng_state()
        meta = {"numbers": numbers, "progress": vars(self.progress), "seed": self.seed}
        checkpoint.save(self.path, tensors, meta)

    def _restore(self) -> None:
        assert self.path is not None
        tensors, meta = checkpoint.load(self.path)
        if meta["seed"] != self.seed:
            raise checkpoint.CheckpointError(f"{self.path} is of seed {meta['seed']}, not {self.seed}")

        def part(prefix: str) -> dict[str, Tensor]:
            return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

        self.model.load_state_dict(part("model/"))
        self.best = part("best/")
        if self.averaged is not None:
            self.averaged.load_state_dict(part("average/"))
        self.optimisers.restore(part("optimiser/"), meta["numbers"])
        self.progress = _Progress(**meta["progress"])
        torch.set_rng_state(tensors["rng"])
        if torch.cuda.is_available() and "rng_cuda" in tensors:
            torch.cuda.set_rng_state(tensors["rng_cuda"])


def peak_memory_mib() -> float:
    """Largest resident size of this process so far, MiB."""
    try:
        import resource
    except ImportError:  # not on Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
