"""A progress bar for training: epoch, loss, validation, curvature, points projected."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import TaskID, TextColumn

from hgde.pipeline.fit import Reporter
from hgde.progress import PlainLines, make_progress, stderr_console

if TYPE_CHECKING:
    from hgde.pipeline.presets import Choice, Rung
    from hgde.pipeline.settings import Settings
    from hgde.training.trainer import Epoch, Outcome


class TrainingBar(Reporter):
    """One line per seed while it trains; a short line when it is done."""

    def __init__(self, console: Console | None = None, quiet: bool = False, label: str = "") -> None:
        self.console = console or stderr_console()
        self.quiet, self.label = quiet, label
        self.progress = make_progress(TextColumn("{task.fields[shown]}"), console=self.console, quiet=quiet)
        self.lines = PlainLines(self.console, quiet or self.console.is_terminal)
        self.name, self.epochs = "", 0
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
            self.console.print(f"presets after {rung.epoch} epochs: {rung.shown()}", highlight=False, soft_wrap=True)

    def preset_chosen(self, choice: Choice) -> None:
        if not self.quiet:
            self.console.print(f"preset: {choice.chosen} (fix it with --preset {choice.chosen})", highlight=False)

    def seed_started(self, seed: int, settings: Settings) -> None:
        self.name, self.epochs = f"{self.label}seed {seed}", settings.training.epochs
        self.row = self.progress.add_task(self.name, total=self.epochs, shown="")

    def epoch_done(self, epoch: Epoch) -> None:
        assert self.row is not None
        score = f"{100 * epoch.score:5.1f}%" if 0 <= epoch.score <= 1 else f"{epoch.score:.4g}"
        shown = f"loss {epoch.loss:.4f}  val {score}  c {epoch.curvature:.3g}  projected {epoch.projected}"
        self.progress.update(self.row, completed=epoch.number, shown=shown)
        self.lines.say(f"{self.name}: epoch {epoch.number} of {self.epochs}  {shown}")

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
