"""What is done with a mangled input, as a user would: read it, and if it is accepted, go on with it."""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from benchmarks.fuzz.mangle import mangle_file
from benchmarks.fuzz.samples import NODES

from hgde.data import read_graph
from hgde.data.preprocessing import Preprocessor
from hgde.estimators import HGDEClassifier
from hgde.graph import Graph, SparseFeatures
from hgde.graph.measures.ricci import ollivier_ricci
from hgde.pipeline import load, make_settings, read_settings, resume
from hgde.pipeline.fit import Reporter
from hgde.training.trainer import Epoch


class Silent(AssertionError):
    """A number that is not finite came through without a word."""


@dataclass(frozen=True)
class Target:
    """What is copied from the samples, which of it is spoilt, and how it is used."""

    copied: tuple[str, ...]
    use: Callable[[Path], None]
    spoilt: tuple[str, ...] = ()

    def prepare(self, samples: Path, place: Path, mark: Path, random: Random) -> None:
        """A fresh copy in ``place``, one of its files mangled."""
        for name in self.copied:
            source = samples / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, place / name)
        if self.spoilt:
            path = place / random.choice(self.spoilt)
        else:
            files = sorted(file for file in place.rglob("*") if file.is_file() and file.name != ".lock")
            path = random.choice(files)
        mangle_file(path, mark, random)


def check_finite(what: str, values: torch.Tensor | None) -> None:
    if values is not None and values.is_floating_point() and not bool(torch.isfinite(values).all()):
        raise Silent(f"{what} holds a number that is not finite")


def _graph(edges: Path, nodes: Path | None = None) -> None:
    dataset = read_graph(edges, nodes)
    check_finite("the weight of an edge", dataset.graph.weights)
    features = Preprocessor.fit(dataset).transform(dataset)
    check_finite("a feature", features.values if isinstance(features, SparseFeatures) else features)
    _ = dataset.hash


def _tables(place: Path) -> None:
    _graph(place / "edges.csv", place / "nodes.csv")


def _packed(place: Path) -> None:
    _graph(next(place.glob("edges.csv.*")), place / "nodes.csv")


def _parquet(place: Path) -> None:
    _graph(place / "edges.parquet", place / "nodes.parquet")


def _npz(place: Path) -> None:
    _graph(place / "graph.npz")


def _graphml(place: Path) -> None:
    _graph(place / "graph.graphml")


def _settings(place: Path) -> None:
    make_settings(read_settings(next(place.glob("settings.*"))))


def _run(place: Path) -> None:
    folder = next(place.glob("run-*"))
    fitted = load(folder)
    for name, weights in fitted.learner.state_dict().items():
        check_finite(f"weight {name!r}", weights)
    fitted.predict()
    outputs, _ = fitted.outputs()
    check_finite("a prediction", outputs)
    fitted.evaluate()


class _EnoughError(Exception):
    """Training goes on as it should; how long is the user's affair."""


class _Patient(Reporter):
    def __init__(self) -> None:
        self.epochs = 0

    def epoch_done(self, epoch: Epoch) -> None:
        self.epochs += 1
        if self.epochs > 5:
            raise _EnoughError


def _resumed(place: Path) -> None:
    try:
        result = resume(next(place.glob("run-*")), epochs=3, reporter=_Patient())
    except _EnoughError:
        return
    if not all(math.isfinite(score) for score in result.summary.scores()):
        raise Silent("a score is not finite")
    for weights in result.models[0].learner.state_dict().values():
        check_finite("a weight", weights)


def _report(place: Path) -> None:
    from hgde.report.from_run import report_of_run

    report_of_run(next(place.glob("run-*")), method="principal")


def _estimator(place: Path) -> None:
    made = HGDEClassifier.load(place / "estimator")
    made._fitted.predict()


def _cache(place: Path) -> None:
    pairs = torch.tensor([[k, (k - 1) // 2] for k in range(1, NODES)]).T
    check_finite("a curvature", ollivier_ricci(Graph.from_edges(pairs), cache_dir=place / "cache"))


def _store(place: Path) -> None:
    from hgde.experiments.jobs import Job
    from hgde.experiments.store import Store

    store = Store(place / "store")
    for cell in store.cells():
        list(store.records(cell))
        store.find(Job(cell, "a", "train", {"run": {"seed": 1}}))


RUN = ("edges.csv", "nodes.csv")
_OF_RUN = ("settings.json", "run.json", "data.safetensors", "problem.safetensors", "seed-0/model.safetensors")
_OF_RESUMED = (*_OF_RUN[:4], "seed-0/checkpoint.safetensors")
_OF_REPORT = (*_OF_RUN, "seed-0/result.json", "summary.json")


def _folder(task: str, use: Callable[[Path], None], files: tuple[str, ...]) -> Target:
    return Target((f"run-{task}",), use, tuple(f"run-{task}/{name}" for name in files))


TARGETS: dict[str, tuple[Target, ...]] = {
    "edge and node tables": (
        Target(RUN, _tables, ("edges.csv",)),
        Target(RUN, _tables, ("nodes.csv",)),
        Target(("edges.csv.gz", "nodes.csv"), _packed, ("edges.csv.gz",)),
        Target(("edges.csv.zst", "nodes.csv"), _packed, ("edges.csv.zst",)),
    ),
    "NPZ": (Target(("graph.npz",), _npz),),
    "Parquet": (Target(("edges.parquet", "nodes.parquet"), _parquet),),
    "GraphML": (Target(("graph.graphml",), _graphml),),
    "settings": (Target(("settings.toml",), _settings), Target(("settings.json",), _settings)),
    "run folders": (
        *(_folder(task, _run, _OF_RUN) for task in ("nodes", "links", "regression")),
        _folder("nodes", _report, _OF_REPORT),
        Target(("estimator",), _estimator),
    ),
    "checkpoints": tuple(_folder(task, _resumed, _OF_RESUMED) for task in ("nodes", "links", "regression")),
    "caches": (Target(("cache",), _cache), Target(("store",), _store)),
}
KINDS = tuple(TARGETS)


def run_case(kind: str, number: int, samples: Path, place: Path, mark: Path, random: Random) -> str:
    """Mangle one input of a kind in the empty folder ``place`` and use it: ``accepted``, or the words of its refusal.

    Raises:
        Silent: if numbers that are not finite came through.
        Exception: whatever a user would see as a traceback.
    """
    from hgde.cli.errors import _words

    targets = TARGETS[kind]
    target = targets[number % len(targets)]
    target.prepare(samples, place, mark, random)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.use(place)
    except (ValueError, OSError, RuntimeError, MemoryError) as error:
        words = _words(error)
        if words is None or isinstance(error, MemoryError):
            raise
        return words
    return "accepted"
