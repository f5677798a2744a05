"""Training a run: one or several seeds of the same settings, kept in a folder that says how it was made."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hgde import randomness
from hgde.data import DataError, Dataset, open_dataset
from hgde.data.settings import DataSettings
from hgde.data.spec import find_spec
from hgde.files import WriteError
from hgde.pipeline.fitted import Fitted, facts_of
from hgde.pipeline.folder import RunError, RunFolder
from hgde.pipeline.prepare import Prepared, build_learner, choose_device, number_type, prepare, versions
from hgde.pipeline.presets import LEAST_EPOCHS, Choice, Rung, choose, preset_names, with_preset
from hgde.pipeline.settings import Settings
from hgde.registry import untrusted
from hgde.sections import SettingsError
from hgde.tasks import Metric, Problem
from hgde.training.checkpoint import CheckpointError, load_weights
from hgde.training.trainer import Epoch, Outcome, Trainer


class Reporter:
    """Hears how a run goes on; this one keeps quiet.

    >>> from hgde import fit, make_settings
    >>> class Counting(Reporter):
    ...     epochs = 0
    ...     def epoch_done(self, epoch):
    ...         self.epochs += 1
    >>> counting, data = Counting(), {"name": "tree-random", "options": ["num_nodes=40"]}
    >>> _ = fit(make_settings({"data": data, "training": {"epochs": 3}, "preset": "none"}), reporter=counting)
    >>> counting.epochs
    3
    """

    def presets_compared(self, rung: Rung) -> None: ...
    def preset_chosen(self, choice: Choice) -> None: ...
    def seed_started(self, seed: int, settings: Settings) -> None: ...
    def epoch_done(self, epoch: Epoch) -> None: ...
    def seed_done(self, outcome: Outcome) -> None: ...


@dataclass
class Summary:
    """All seeds of a run.

    >>> from hgde import fit, make_settings
    >>> data = {"name": "tree-random", "options": ["num_nodes=40"]}
    >>> quick = {"data": data, "training": {"epochs": 1}, "run": {"seeds": 2}, "preset": "none"}
    >>> summary = fit(make_settings(quick)).summary
    >>> len(summary.scores()), summary.metric.name
    (2, 'accuracy')
    """

    settings: Settings
    outcomes: list[Outcome]
    metric: Metric
    split_hash: str
    data_hash: str
    versions: dict[str, str]

    def scores(self, metric: str | None = None) -> list[float]:
        return [outcome.test[metric or self.metric.name] for outcome in self.outcomes]

    def mean(self, metric: str | None = None) -> float:
        return statistics.fmean(self.scores(metric))

    def std(self, metric: str | None = None) -> float:
        """Sample standard deviation over seeds (0 for one seed)."""
        scores = self.scores(metric)
        return statistics.stdev(scores) if len(scores) > 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        outcomes = [{k: v for k, v in asdict(o).items() if k != "history"} for o in self.outcomes]
        return {
            "metric": self.metric.name,
            "mean": self.mean(),
            "std": self.std(),
            "settings": self.settings.to_dict(),
            "split_hash": self.split_hash,
            "data_hash": self.data_hash,
            "versions": self.versions,
            "outcomes": outcomes,
        }


@dataclass
class Result:
    """What training gives: the figures of all seeds, and each seed's model.

    >>> from hgde import fit, make_settings
    >>> data = {"name": "tree-random", "options": ["num_nodes=40"]}
    >>> result = fit(make_settings({"data": data, "training": {"epochs": 1}, "preset": "none"}))
    >>> len(result.models), result.models[0].embed().shape[0]
    (1, 40)
    """

    summary: Summary
    models: list[Fitted]
    choice: Choice | None = None
    """How the preset was chosen, where there were several."""


def fit(
    settings: Settings,
    folder: str | Path | None = None,
    *,
    dataset: Dataset | None = None,
    problem: Problem | None = None,
    reporter: Reporter | None = None,
    start: Mapping[str, Tensor] | None = None,
) -> Result:
    """Train every seed of the settings; with a folder, keep data, checkpoints, models and results there.

    Args:
        settings: what to do.
        folder: where to keep it; must not hold a run already.
        dataset, problem: data, and the problem posed on it, instead of what the settings name.
        reporter: hears of seeds and epochs.
        start: weights to begin with instead of fresh ones.

    >>> from hgde import make_settings
    >>> data = {"name": "disease-sim", "options": ["num_nodes=60"]}
    >>> quick = {"data": data, "training": {"epochs": 2}, "preset": "none"}
    >>> result = fit(make_settings(quick))
    >>> result.summary.metric.name, 0 <= result.summary.mean() <= 1
    ('accuracy', True)
    """
    run = None if folder is None else RunFolder(Path(folder))
    if run is not None and run.exists:
        raise RunError(f"{run.path} already holds a run; resume it (--resume {run.path}) or choose another folder")
    device = choose_device(settings.run.device)
    # Data is accepted before anything is written: a refused graph must not leave a folder that looks like a run.
    prepared = prepare(settings, dataset, problem)
    is_ours = False
    with nullcontext() if run is None else run.saying_what_is_kept():
        try:
            with nullcontext() if run is None else run.locked():
                is_ours = True
                if run is not None:
                    facts = facts_of(prepared, is_named=dataset is None)
                    run.start(settings, prepared.dataset, prepared.problem, facts)
                return _Run(settings, prepared, device, run, reporter or Reporter()).train(start=start)
        except (ValueError, RunError, CheckpointError, WriteError):
            if run is not None and is_ours and not run.seeds():  # refused before anything was trained
                run.discard()
            raise


def resume(
    folder: str | Path,
    *,
    epochs: int | None = None,
    seeds: int | None = None,
    problem: Problem | None = None,
    reporter: Reporter | None = None,
) -> Result:
    """Go on with the run in a folder, to the very result that an uninterrupted one would have had.

    ``epochs`` and ``seeds`` may be raised; everything else is as the folder says. Data that has changed is refused.
    ``problem`` is needed where the run was started with one.

    >>> import tempfile
    >>> from hgde import fit, make_settings
    >>> data = {"name": "tree-random", "options": ["num_nodes=40"]}
    >>> quick = make_settings({"data": data, "training": {"epochs": 1}, "preset": "none"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fit(quick, f"{folder}/run")
    ...     resume(f"{folder}/run", epochs=2).summary.settings.training.epochs
    2
    """
    run = RunFolder(Path(folder))
    settings = run.settings()
    changes: dict[str, Any] = {}
    for name, path, wanted in (("epochs", "training.epochs", epochs), ("seeds", "run.seeds", seeds)):
        before = getattr(settings.training if name == "epochs" else settings.run, name)
        if wanted is not None:
            if wanted < before:
                raise RunError(f"{name} can only be raised on resume: {before} then, {wanted} now")
            changes[path] = wanted
    settings = settings.replace(changes) if changes else settings
    device = choose_device(settings.run.device)
    with run.saying_what_is_kept(), run.locked():
        dataset = run.data()
        check_unchanged(run, settings, dataset)
        with untrusted():  # the folder may come from elsewhere
            prepared = prepare(settings, dataset, problem)
            if prepared.problem.split_hash != run.facts()["split_hash"]:
                raise RunError(f"the split of {run.path} has changed since it was started; train it anew")
            run.write_settings(settings)
            return _Run(settings, prepared, device, run, reporter or Reporter()).train(is_resumed=True)


def check_unchanged(run: RunFolder, settings: Settings, dataset: Dataset) -> None:
    """Refuse when the files that the settings name are there and hold other data than the run was made with."""
    if not run.facts().get("data_named_by_settings", True):
        return  # it was handed over in memory
    if not _can_be_compared(settings.data):
        return
    try:
        with untrusted():
            current = open_dataset(settings.data, download=False)
    except (DataError, OSError):
        return  # gone, or never on this machine: the run has its own copy
    if current.hash != dataset.hash:
        raise RunError(
            f"the data of this run ({dataset.name}) has changed since it was started; put the old data back, or train "
            "a new run on the new data"
        )


def _can_be_compared(data: DataSettings) -> bool:
    """Whether looking at what the settings of a run name is harmless: they may come from elsewhere.

    A pipe or device would never end, and a simulated set of any size would have to be made.
    """
    if data.edges is None:
        with untrusted():
            try:
                return find_spec(data.name).kind != "generated"
            except ValueError:
                return False
    try:
        return all(Path(name).expanduser().is_file() for name in (data.edges, data.nodes) if name is not None)
    except (OSError, RuntimeError, ValueError):  # a name too long, of an unknown user, with a NUL
        return False


class _Run:
    """A run under way: the preset is settled, then every seed is trained and kept."""

    def __init__(
        self, settings: Settings, prepared: Prepared, device: torch.device, run: RunFolder | None, reporter: Reporter
    ) -> None:
        self.settings, self.prepared, self.device, self.run, self.reporter = settings, prepared, device, run, reporter

    def train(self, is_resumed: bool = False, start: Mapping[str, Tensor] | None = None) -> Result:
        first = self.settings.run.seed
        with _threads(self.settings.run.threads):
            choice, ready = self._settle_preset(start)
            outcomes, models = [], []
            for seed in range(first, first + self.settings.run.seeds):
                self.reporter.seed_started(seed, self.settings)
                trainer = ready if ready is not None and seed == first else self._trainer(self.settings, seed, start)
                outcome, fitted = self._train_seed(trainer, is_resumed and trainer is not ready)
                outcomes.append(outcome)
                models.append(fitted)
                self.reporter.seed_done(outcome)
        problem = self.prepared.problem
        data_hash = self.prepared.dataset.hash
        summary = Summary(self.settings, outcomes, problem.task.metric, problem.split_hash, data_hash, versions())
        if self.run is not None:
            self.run.write("summary.json", summary.to_dict())
        return Result(summary, models, choice)

    def _settle_preset(self, start: Mapping[str, Tensor] | None) -> tuple[Choice | None, Trainer | None]:
        """Choose a preset where there are several; the winner's training, under way, is that of the first seed."""
        settings = self.settings
        names = preset_names(settings, self.prepared.problem)
        if not names:
            return None, None
        is_race = len(names) > 1 and settings.training.epochs >= LEAST_EPOCHS and start is None
        if not is_race:
            self._take(with_preset(settings, names[0]))
            return None, None
        made: dict[str, tuple[Settings, Prepared]] = {}

        def make(name: str) -> Trainer:
            candidate = with_preset(settings, name)
            made[name] = candidate, self._prepared_for(candidate)
            return self._trainer(candidate, settings.run.seed, None, made[name][1])

        choice, trainer = choose(names, make, self.reporter.presets_compared)
        self.settings, self.prepared = made[choice.chosen]
        trainer.path = self._place(settings.run.seed)
        if self.run is not None:
            self.run.write("choice.json", choice.to_dict())
            self.run.write_settings(self.settings)
        self.reporter.preset_chosen(choice)
        return choice, trainer

    def _take(self, settings: Settings) -> None:
        self.prepared, self.settings = self._prepared_for(settings), settings
        if self.run is not None:
            self.run.write_settings(settings)

    def _prepared_for(self, settings: Settings) -> Prepared:
        own, prepared = self.settings, self.prepared
        if settings.preprocessing != own.preprocessing or settings.run.dtype != own.run.dtype:
            prepared = prepare(settings, prepared.dataset, prepared.problem)
        if settings.task == own.task:
            return prepared
        # The question stays as it was posed, on the same split; what a preset may change is how it is learned.
        task = prepared.problem.task
        answered = type(task).from_fitted(settings.task.options, task.fitted())
        return replace(prepared, problem=replace(prepared.problem, task=answered))

    def _place(self, seed: int) -> Path | None:
        return None if self.run is None else self.run.file(f"seed-{seed}/checkpoint.safetensors")

    def _trainer(
        self, settings: Settings, seed: int, start: Mapping[str, Tensor] | None, prepared: Prepared | None = None
    ) -> Trainer:
        known = self.prepared if prepared is None else prepared
        problem = known.problem.to(self.device, number_type(settings))
        generator = randomness.make_generator(seed)
        learner = build_learner(settings, problem.task, known.shape, generator).to(self.device)
        if start is None:
            learner.model.begin(problem.inputs, problem.graph)
        else:
            load_weights(learner, start, "the model to start from")
        if self.device.type != "cpu":
            generator = randomness.make_generator(seed, self.device)
        path = None if prepared is not None else self._place(seed)
        trainer = Trainer(learner, problem, settings.training, seed, generator, path, settings.run.checkpoint_every)
        for name in settings.given.get("training", {}):
            reason = trainer.idle.get(name)
            if reason is not None:
                raise SettingsError(f"training.{name} has no effect: {reason}; leave it out")
        return trainer

    def _train_seed(self, trainer: Trainer, is_resumed: bool) -> tuple[Outcome, Fitted]:
        settings, prepared = self.settings, self.prepared
        if not trainer.is_started:
            trainer.start(is_resumed)
        trainer.advance(settings.training.epochs, self.reporter.epoch_done)
        outcome = trainer.finish()
        task, learner = trainer.task, trainer.learner.eval()
        fitted = Fitted(settings, task, learner, prepared.preprocessor, prepared.shape, prepared, self.device)
        if self.run is not None:
            fitted.save(self.run.seed_folder(outcome.seed) / "model.safetensors")
            self.run.write(f"seed-{outcome.seed}/result.json", asdict(outcome))
        return outcome, fitted


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """The asked number of threads inside, the caller's afterwards."""
    if count is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
