"""Presets: configurations that a model brings, and the choice among them on the user's own validation part.

Settings that the user gave win over a preset. ``auto`` trains every candidate for a few epochs, drops the weaker half,
trains the rest longer, and so on (successive halving); the last one left is trained to the end. Candidates are ranked
by their cross-fitted score; for classes, less a share of their loss, which wavers less than accuracy where few nodes
are held out. Training that was paused gives what training without a pause gives, so a run that chose a preset equals
one that was started with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from hgde.pipeline.settings import Settings, restore_settings
from hgde.sections import overlay
from hgde.tasks import Problem
from hgde.tasks.metrics import CLASSES
from hgde.training.cross_fitting import calibrated_loss, cross_fitted
from hgde.training.trainer import Epoch, Trainer, TrainingError

logger = logging.getLogger(__name__)

AUTO, NONE = "auto", "none"
LEAST_EPOCHS = 50
"""Shorter trainings are not raced: the first preset is taken."""

LOSS_SHARE = 0.3
"""How much of accuracy a nat of log loss is worth when candidates are ranked."""


@dataclass(frozen=True)
class Rung:
    """One look at the candidates: the epoch, their cross-fitted scores, and who went on."""

    epoch: int
    scores: dict[str, float]
    kept: list[str]
    losses: dict[str, float] = field(default_factory=dict)
    """Validation loss once calibrated, where candidates are ranked by it too."""

    def shown(self) -> str:
        """Scores and losses, the best candidate first."""
        return ", ".join(self._shown(name) for name in sorted(self.scores, key=self.rank, reverse=True))

    def rank(self, name: str) -> float:
        """What candidates are ranked by: larger is better."""
        return self.scores[name] - LOSS_SHARE * self.losses.get(name, 0.0)

    def _shown(self, name: str) -> str:
        score = f"{name} {100 * self.scores[name]:.1f}"
        return f"{score} (loss {self.losses[name]:.2f})" if name in self.losses else score


@dataclass
class Choice:
    """How a preset was chosen; kept with the run."""

    chosen: str
    rungs: list[Rung] = field(default_factory=list)
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """The log in words, a line per rung."""
        lines = [f"epoch {rung.epoch}: {rung.shown()}" for rung in self.rungs]
        return [*lines, f"chosen: {self.chosen}" + (f" ({self.reason})" if self.reason else "")]


def preset_names(settings: Settings, problem: Problem) -> list[str]:
    """The presets to choose among for these settings: those that differ once the user's settings are laid over them."""
    model = settings.model.entry
    if settings.preset == NONE:
        return []
    if settings.preset != AUTO:
        return [settings.preset]
    # A share of nodes; for links, whose training part holds edges, it is not looked at.
    labelled = problem.parts["train"].size / max(1, problem.graph.num_nodes)
    names = [name for name in model.candidates(settings.task.name, problem.graph, labelled) if name in model.presets]
    seen: list[dict[str, Any]] = []
    kept = []
    for name in names:
        values = with_preset(settings, name).to_dict() | {"preset": ""}
        if values not in seen:
            seen.append(values)
            kept.append(name)
    return kept


def with_preset(settings: Settings, name: str) -> Settings:
    """The settings with a preset laid under what the user gave."""
    preset = settings.model.entry.preset(name)
    below = {key: dict(value) for key, value in preset.items()}
    below.setdefault("model", {})["name"] = settings.model.name
    given = overlay(settings.given, {"preset": name})
    return restore_settings(overlay(below, given), given)


def rungs_for(count: int, epochs: int) -> list[int]:
    """Epochs after which the weaker half of so many candidates goes, the last of them deciding.

    Most trainings end long before their last epoch, so a race must cost less than a training: with the winner's
    training to its end, it comes to two or three times the epochs of that alone. The first look comes late enough for
    candidates that carry features far, which start slowly.
    """
    shares = (0.15, 0.3) if count <= 4 else (0.1, 0.225) if count <= 7 else (0.05, 0.1, 0.2)
    return [max(1, round(share * epochs)) for share in shares]


def choose(
    names: list[str],
    make: Callable[[str], Trainer],
    on_rung: Callable[[Rung], None] | None = None,
) -> tuple[Choice, Trainer]:
    """Successive halving among the candidates; the trainer of the last one left is ready to go on."""
    racers = {name: _Racer(make(name)) for name in names}
    choice = Choice(names[0])
    rungs = rungs_for(len(names), max(racer.trainer.settings.epochs for racer in racers.values()))
    for epoch in rungs:
        for racer in racers.values():
            racer.advance(epoch)
        scores = {name: racer.score() for name, racer in racers.items()}
        losses = {name: racer.loss() for name, racer in racers.items() if racer.has_loss}
        rung = Rung(epoch, scores, [], losses)
        # Equals go to the candidate that is listed first: the simpler one.
        ordered = sorted(racers, key=lambda name: (-rung.rank(name), names.index(name)))
        rung.kept.extend(ordered[: (len(ordered) + 1) // 2] if epoch != rungs[-1] else ordered[:1])
        choice.rungs.append(rung)
        if on_rung is not None:
            on_rung(rung)
        racers = {name: racers[name] for name in names if name in rung.kept}
    choice.chosen = next(iter(racers))
    return choice, racers[choice.chosen].trainer


class _Racer:
    """A candidate in training, with its predictions for the validation part, epoch by epoch."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.predictions: list[Tensor] = []
        self.failed = False
        trainer.start()

    def advance(self, until: int) -> None:
        try:
            self.trainer.advance(until, self._keep)
        except TrainingError as error:  # a candidate that diverges here is no candidate
            logger.info("a preset failed: %s", error)
            self.failed = True

    def _keep(self, epoch: Epoch) -> None:
        self.predictions.append(epoch.predictions)

    def score(self) -> float:
        if self.failed or not self.predictions:
            return -float("inf")
        truth = self.trainer.problem.parts["val"].truth
        return cross_fitted(self.trainer.task, self.predictions, truth, self.trainer.settings.keep)

    @property
    def has_loss(self) -> bool:
        return self.trainer.task.kind == CLASSES and bool(self.predictions) and not self.failed

    def loss(self) -> float:
        return calibrated_loss(self.trainer.task, self.predictions, self.trainer.problem.parts["val"].truth)
