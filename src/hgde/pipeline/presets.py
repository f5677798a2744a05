"""Presets: configurations that a model brings, and the choice among them on the user's own validation part.

Settings that the user gave win over a preset. ``auto`` trains every candidate for a few epochs, drops the weaker half,
trains the rest longer, and so on (successive halving); the last one left is trained to the end. Training that was
paused gives what training without a pause gives, so a run that chose a preset equals one that was started with it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor

from hgde.pipeline.settings import Settings, restore_settings
from hgde.sections import overlay
from hgde.tasks import Problem
from hgde.training.cross_fitting import cross_fitted
from hgde.training.trainer import Epoch, Trainer, TrainingError

logger = logging.getLogger(__name__)

AUTO, NONE = "auto", "none"
LEAST_EPOCHS = 50
"""Shorter trainings are not raced: the first preset is taken."""


@dataclass(frozen=True)
class Rung:
    """One look at the candidates: the epoch, their cross-fitted scores, and who went on."""

    epoch: int
    scores: dict[str, float]
    kept: list[str]


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
        lines = []
        for rung in self.rungs:
            ordered = sorted(rung.scores.items(), key=lambda item: -item[1])
            shown = ", ".join(f"{name} {100 * score:.1f}" for name, score in ordered)
            lines.append(f"epoch {rung.epoch}: {shown}")
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
    training to its end, it comes to two or three times the epochs of that alone.
    """
    number = max(1, math.ceil(math.log2(count)))
    last = epochs * (0.3 if number < 3 else 0.2)
    return [max(1, round(last / 2 ** (number - 1 - place))) for place in range(number)]


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
        # Equal scores go to the candidate that is listed first: the simpler one.
        ordered = sorted(racers, key=lambda name: (-scores[name], names.index(name)))
        kept = ordered[: (len(ordered) + 1) // 2] if epoch != rungs[-1] else ordered[:1]
        choice.rungs.append(Rung(epoch, scores, kept))
        if on_rung is not None:
            on_rung(choice.rungs[-1])
        racers = {name: racers[name] for name in names if name in kept}
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
