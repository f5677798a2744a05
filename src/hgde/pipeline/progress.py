"""A progress bar for training: epoch, loss, validation, curvature, points projected."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from hgde.pipeline.fit import Reporter

if TYPE_CHECKING:
    from hgde.pipeline.presets import Choice, Rung
    from hgde.pipeline.settings import Settings
    from hgde.training.trainer import Epoch, Outcome


class TrainingBar(Reporter):
    """One line per seed while it trains; a short line when it is done."""

    def __init__(self, console: Console | None = None, quiet: bool = False, label: str = "") -> None:
        self.console = console or Console(stderr=True)
        self.quiet, self.label = quiet, label
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}"),
            TimeRemainingColumn(compact=True),
            console=self.console,
            disable=quiet or not sys.stderr.isatty(),
            transient=True,
        )
        self.row: TaskID | None = None

    def __enter__(self) -> TrainingBar:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def presets_compared(self, rung: Rung) -> None:
        if not self.quiet:
            ordered = sorted(rung.scores.items(), key=lambda item: -item[1])
            shown = ", ".join(f"{name} {100 * score:.1f}" for name, score in ordered)
            self.console.print(f"presets after {rung.epoch} epochs: {shown}", highlight=False, soft_wrap=True)

    def preset_chosen(self, choice: Choice) -> None:
        if not self.quiet:
            self.console.print(f"preset: {choice.chosen} (fix it with --preset {choice.chosen})", highlight=False)

    def seed_started(self, seed: int, settings: Settings) -> None:
        self.row = self.progress.add_task(f"{self.label}seed {seed}", total=settings.training.epochs, shown="")

    def epoch_done(self, epoch: Epoch) -> None:
        assert self.row is not None
        shown = (
            f"loss {epoch.loss:.4f}  val {100 * epoch.score:5.1f}%  c {epoch.curvature:.3g}"
            f"  projected {epoch.projected}"
        )
        self.progress.update(self.row, completed=epoch.number, shown=shown)

    def seed_done(self, outcome: Outcome) -> None:
        assert self.row is not None
        self.progress.remove_task(self.row)
        if not self.quiet:
            scores = "  ".join(f"{name} {value:.3f}" for name, value in list(outcome.test.items())[:3])
            spent = f"{outcome.seconds:.1f} s, {outcome.epoch_ms:.1f} ms per epoch"
            self.console.print(
                f"{self.label}seed {outcome.seed}: test {scores}  "
                f"(epoch {outcome.best_epoch} of {outcome.epochs}, {spent})",
                highlight=False,
                soft_wrap=True,
            )
