"""A run: one or several seeds of the same settings, kept in a folder that says how it was made."""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from hgde.data import Dataset
from hgde.models import HGDE, NodeModel
from hgde.settings import Settings, from_dict
from hgde.training import checkpoint
from hgde.training.inputs import InputScaling
from hgde.training.prepare import input_scaling, load_dataset, make_task
from hgde.training.tasks import Task
from hgde.training.trainer import Epoch, Outcome, Trainer, seed_everything

BuildModel = Callable[[Settings, int, int | None], NodeModel]


class RunError(RuntimeError):
    """A run folder that cannot be used; the message says what to do."""


class Reporter:
    """What a run tells while it goes on; this one keeps quiet."""

    def seed_started(self, seed: int, settings: Settings) -> None: ...
    def epoch_done(self, epoch: Epoch) -> None: ...
    def seed_done(self, outcome: Outcome) -> None: ...


@dataclass
class Summary:
    """All seeds of a run."""

    settings: dict[str, Any]
    outcomes: list[Outcome]
    metric: str
    split_hash: str
    data_hash: str
    versions: dict[str, str]

    def scores(self, metric: str | None = None) -> list[float]:
        return [outcome.test[metric or self.metric] for outcome in self.outcomes]

    def mean(self, metric: str | None = None) -> float:
        return statistics.fmean(self.scores(metric))

    def std(self, metric: str | None = None) -> float:
        """Sample standard deviation over seeds (0 for one seed)."""
        scores = self.scores(metric)
        return statistics.stdev(scores) if len(scores) > 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        outcomes = [{k: v for k, v in asdict(o).items() if k != "history"} for o in self.outcomes]
        return {
            "metric": self.metric,
            "mean": self.mean(),
            "std": self.std(),
            "settings": self.settings,
            "split_hash": self.split_hash,
            "data_hash": self.data_hash,
            "versions": self.versions,
            "outcomes": outcomes,
        }


def versions() -> dict[str, str]:
    """What the numbers depend on besides settings and data."""
    from importlib.metadata import version

    named = {name: version(name) for name in ("hgde", "torch", "numpy", "geoopt", "numba")}
    return {"python": platform.python_version(), **named}


def choose_device(settings: Settings) -> torch.device:
    if settings.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(settings.device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"device {settings.device!r} cannot be used here ({reason}); try auto or cpu") from None
    return device


def build_hgde(settings: Settings, in_features: int, num_classes: int | None) -> NodeModel:
    return HGDE.from_settings(settings, in_features, num_classes)


def train(
    settings: Settings,
    folder: Path | None = None,
    *,
    resume: bool = False,
    reporter: Reporter | None = None,
    dataset: Dataset | None = None,
    task: Task | None = None,
    build: BuildModel = build_hgde,
) -> Summary:
    """Train every seed of the settings; with a folder, keep checkpoints, models and results there.

    Args:
        settings: what to do.
        folder: where to keep it; must not hold another run unless ``resume``.
        resume: go on with the run in the folder (its settings must be the same).
        dataset, task: data at hand, instead of what the settings name.
        build: makes the model (the default is HGDE; baselines pass their own).
    """
    reporter = reporter or Reporter()
    if folder is not None:
        _check_folder(folder, settings, resume)
    device = choose_device(settings)
    dataset = dataset if dataset is not None else load_dataset(settings)
    task = task if task is not None else make_task(dataset, settings)
    if folder is not None:
        # Only now that the data is accepted: a refused graph must not leave a folder that looks like a run.
        _write_json(folder / "settings.json", settings.to_dict())
    task.to(device, getattr(torch, settings.dtype))
    outcomes = []
    for seed in range(settings.seed, settings.seed + settings.seeds):
        place = None if folder is None else folder / f"seed-{seed}"
        reporter.seed_started(seed, settings)
        with _torch_state(settings.threads):
            seed_everything(seed)
            model = build(settings, int(task.features.shape[1]), task.num_classes).to(device)
            outcome = Trainer(model, task, settings, seed, place).fit(resume, reporter.epoch_done)
        outcomes.append(outcome)
        if place is not None:
            _keep(place, model, outcome, settings, task, dataset)
        reporter.seed_done(outcome)
    summary = Summary(settings.to_dict(), outcomes, task.metric, task.split_hash, dataset.hash, versions())
    if folder is not None:
        _write_json(folder / "summary.json", summary.to_dict())
    return summary


@contextmanager
def _torch_state(threads: int | None) -> Iterator[None]:
    """The asked number of threads inside; the caller's threads and random numbers untouched outside."""
    before = torch.get_num_threads()
    with torch.random.fork_rng():
        try:
            if threads is not None:
                torch.set_num_threads(threads)
            yield
        finally:
            torch.set_num_threads(before)


def _check_folder(folder: Path, settings: Settings, resume: bool) -> None:
    known = folder / "settings.json"
    if known.exists():
        before = json.loads(known.read_text(encoding="utf-8"))
        if not resume:
            raise RunError(f"{folder} holds a run already; go on with it (--resume) or choose another folder (--out)")
        changed = {k for k, v in settings.to_dict().items() if before.get(k) != v} - {"seeds", "threads"}
        if changed:
            told = ", ".join(f"{k}: {before.get(k)} then, {getattr(settings, k)} now" for k in sorted(changed))
            raise RunError(f"the run in {folder} was made with other settings ({told}); resume with the same ones")


def _keep(place: Path, model: NodeModel, outcome: Outcome, settings: Settings, task: Task, dataset: Dataset) -> None:
    meta = {
        "settings": settings.to_dict(),
        "in_features": int(task.features.shape[1]),
        "num_classes": task.num_classes,
        "class_names": dataset.class_names,
        "curvatures": model.curvatures(),
        "data": dataset.name,
        "data_hash": dataset.hash,
        "split_hash": task.split_hash,
        "versions": versions(),
    }
    scaling = input_scaling(dataset, settings, task)
    meta["input_scaling"] = scaling.how
    tensors = {f"inputs/{name}": value for name, value in scaling.tensors().items()} | dict(model.state_dict())
    checkpoint.save(place / "model.safetensors", tensors, meta)
    _write_json(place / "result.json", asdict(outcome))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    checkpoint.write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


@dataclass
class TrainedModel:
    """A model read back from a run, with what it was trained on."""

    model: HGDE
    settings: Settings
    meta: dict[str, Any]
    scaling: InputScaling


def load_model(folder: Path, seed: int | None = None) -> TrainedModel:
    """The trained model of a run folder (its first seed unless one is named), ready to predict."""
    if not (folder / "settings.json").exists():
        raise RunError(f"{folder} is not the folder of a run (no settings.json in it); train one with `hgde train`")
    places = sorted(folder.glob("seed-*"), key=lambda p: int(p.name.removeprefix("seed-")))
    place = places[0] if seed is None and places else folder / f"seed-{seed}"
    if not (place / "model.safetensors").exists():
        raise RunError(f"{place} has no finished model; finish the run with `hgde train --resume`")
    tensors, meta = checkpoint.load(place / "model.safetensors")
    settings = from_dict(meta["settings"])
    model = HGDE.from_settings(settings, meta["in_features"], meta["num_classes"])
    scaling = InputScaling(meta["input_scaling"], tensors.pop("inputs/mean", None), tensors.pop("inputs/scale", None))
    model.load_state_dict(tensors)
    return TrainedModel(model.eval(), settings, meta, scaling)
