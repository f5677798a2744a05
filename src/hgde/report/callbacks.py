"""Training followed by other programs: reporters that write to TensorBoard or MLflow, and several at once.

::

    from hgde import fit, make_settings
    from hgde.report.callbacks import TensorBoardReporter

    fit(make_settings({"data": {"name": "disease-sim"}}), reporter=TensorBoardReporter("runs/board"))
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgde.pipeline import Reporter

if TYPE_CHECKING:
    from hgde.pipeline import Settings
    from hgde.pipeline.presets import Choice, Rung
    from hgde.training.trainer import Epoch, Outcome


class Reporters(Reporter):
    """Several reporters as one.

    >>> Reporters(Reporter(), Reporter()).reporters[0].__class__.__name__
    'Reporter'
    """

    def __init__(self, *reporters: Reporter) -> None:
        self.reporters = reporters

    def presets_compared(self, rung: Rung) -> None:
        for one in self.reporters:
            one.presets_compared(rung)

    def preset_chosen(self, choice: Choice) -> None:
        for one in self.reporters:
            one.preset_chosen(choice)

    def seed_started(self, seed: int, settings: Settings) -> None:
        for one in self.reporters:
            one.seed_started(seed, settings)

    def epoch_done(self, epoch: Epoch) -> None:
        for one in self.reporters:
            one.epoch_done(epoch)

    def seed_done(self, outcome: Outcome) -> None:
        for one in self.reporters:
            one.seed_done(outcome)


class TensorBoardReporter(Reporter):
    """Loss, validation score, curvature and projected points per epoch, a run of TensorBoard for each seed.

    >>> from hgde import fit, make_settings
    >>> fit(make_settings(), reporter=TensorBoardReporter("board"))  # doctest: +SKIP
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError('this reporter needs TensorBoard; try pip install "hgde[tracking]"') from error
        self.folder, self._make = Path(folder), SummaryWriter
        self._writer: Any = None

    def seed_started(self, seed: int, settings: Settings) -> None:
        self._writer = self._make(str(self.folder / f"seed-{seed}"))
        self._writer.add_text("settings", "\n".join(f"    {k} = {v}" for k, v in flat(settings.to_dict()).items()))

    def epoch_done(self, epoch: Epoch) -> None:
        for name, value in epoch_values(epoch).items():
            self._writer.add_scalar(name, value, epoch.number)

    def seed_done(self, outcome: Outcome) -> None:
        for name, value in outcome.test.items():
            self._writer.add_scalar(f"test/{name}", value, outcome.best_epoch)
        self._writer.close()


class MLflowReporter(Reporter):
    """The same as runs of MLflow, one for each seed, with the settings as parameters.

    >>> from hgde import fit, make_settings
    >>> fit(make_settings(), reporter=MLflowReporter("my-graph"))  # doctest: +SKIP
    """

    def __init__(self, experiment: str = "hgde", tracking_uri: str | None = None) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise ImportError('this reporter needs MLflow; try pip install "hgde[tracking]"') from error
        self.mlflow = mlflow
        if tracking_uri is not None:
            mlflow.set_tracking_uri(tracking_uri)
        mlflow.set_experiment(experiment)

    def seed_started(self, seed: int, settings: Settings) -> None:
        self.mlflow.start_run(run_name=f"seed-{seed}")
        given = {name: str(value)[:500] for name, value in flat(settings.to_dict()).items()}
        self.mlflow.log_params(given)

    def epoch_done(self, epoch: Epoch) -> None:
        self.mlflow.log_metrics(epoch_values(epoch), step=epoch.number)

    def seed_done(self, outcome: Outcome) -> None:
        self.mlflow.log_metrics({f"test/{name.replace('@', '_at_')}": value for name, value in outcome.test.items()})
        self.mlflow.end_run()


def epoch_values(epoch: Epoch) -> dict[str, float]:
    """What is followed of an epoch."""
    return {
        "train/loss": epoch.loss,
        "validation/score": epoch.score,
        "validation/loss": epoch.validation_loss,
        "curvature": epoch.curvature,
        "projected": float(epoch.projected),
    }


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested sections as one level of dotted names.

    >>> flat({"model": {"width": 8}, "preset": "auto"})
    {'model.width': 8, 'preset': 'auto'}
    """
    result: dict[str, Any] = {}
    for name, value in values.items():
        place = f"{above}{name}"
        result |= flat(value, f"{place}.") if isinstance(value, Mapping) else {place: value}
    return result
