"""From settings and data to something to train: the problem with its input features, and a learner for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

import torch

from hgde import randomness
from hgde.data import Dataset, open_dataset
from hgde.data.preprocessing import Preprocessor
from hgde.models.base import Model, Shape
from hgde.pipeline.settings import Settings
from hgde.tasks import Learner, Problem, Task


class DeviceError(RuntimeError):
    """A device that cannot be used here."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A data set, the problem posed on it, and how its features were made.

    >>> from hgde import make_settings
    >>> from hgde.pipeline import prepare
    >>> prepared = prepare(make_settings({"data": {"name": "tree-random", "options": ["num_nodes=40"]}}))
    >>> prepared.dataset.num_nodes, prepared.shape.num_nodes
    (40, 40)
    """

    dataset: Dataset
    problem: Problem
    preprocessor: Preprocessor

    @property
    def shape(self) -> Shape:
        features = self.problem.inputs
        return Shape(int(features.shape[1]), self.problem.graph.num_nodes, self.problem.task.outputs)


def prepare(settings: Settings, dataset: Dataset | None = None, problem: Problem | None = None) -> Prepared:
    """Load the data, split it, fit the preprocessing to the training graph. Data or problem at hand may be given.

    >>> from hgde import make_settings
    >>> prepared = prepare(make_settings({"data": {"name": "tree-random", "options": ["num_nodes=40"]}}))
    >>> {name: part.size for name, part in prepared.problem.parts.items()}
    {'train': 24, 'val': 8, 'test': 8}
    """
    data = open_dataset(settings.data) if dataset is None else dataset
    if problem is None:
        problem = settings.task.entry.pose(data, settings.task.options, settings.data)
    stored = data.inputs(settings.task.name, settings.data.protocol, problem.graph)
    preprocessor = Preprocessor.fit(stored, settings.preprocessing, problem.graph)
    features = preprocessor.transform(stored, problem.graph).to(number_type(settings))
    return Prepared(data, problem.with_features(features), preprocessor)


def build_learner(settings: Settings, task: Task, shape: Shape, generator: torch.Generator) -> Learner:
    """A fresh learner, its weights drawn from the generator, on the CPU."""
    with randomness.use(generator, reroute=True):
        model: Model = settings.model.entry(settings.model.options, shape)
        learner = Learner(model, task.head(model, shape.num_nodes), shape.outputs)
    return learner.to(number_type(settings))


def number_type(settings: Settings) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, settings.run.dtype)
    return dtype


def choose_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise DeviceError(f"device {name!r} cannot be used here ({reason}); try auto or cpu") from None
    return device


@cache
def _installed() -> dict[str, str]:
    """Versions of packages; Python reads a package's whole description for each."""
    from importlib.metadata import version

    packages = ("hgde", "torch", "numpy", "scipy", "geoopt", "llvmlite", "torch_geometric")
    return {name: version(name) for name in packages}


def versions() -> dict[str, str]:
    """What the numbers depend on besides settings and data: versions, and what the CPU makes libraries choose.

    >>> sorted(versions())[:3]
    ['cpu_capability', 'geoopt', 'hgde']
    """
    import platform

    capability = torch.backends.cpu.get_cpu_capability()
    return {
        "python": platform.python_version(),
        **_installed(),
        "machine": platform.machine(),
        "cpu_capability": os.environ.get("ATEN_CPU_CAPABILITY", capability),
    }
