"""A trained model with all it needs to be used: predict, embed and score on its own data or on another graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde import randomness
from hgde.data import Dataset
from hgde.data.preprocessing import Preprocessor
from hgde.graph import Features, Graph
from hgde.models.base import Shape
from hgde.pipeline.folder import RunError, RunFolder
from hgde.pipeline.folder_checks import Allowance, find_gap, model_problem, own_files
from hgde.pipeline.prepare import Prepared, build_learner, choose_device, number_type, versions
from hgde.pipeline.settings import Settings, make_settings
from hgde.registry import untrusted
from hgde.tasks import PARTS, Learner, Predicted, Problem, Scores, Table, Task
from hgde.training import checkpoint

Array = np.ndarray[Any, Any]


@dataclass(eq=False)
class Fitted:
    """A learner, the task it answers, and how its inputs are made.

    ``own`` is what it was trained on; models read from a folder work it out when it is first needed.

    >>> from hgde import fit, make_settings
    >>> data = {"name": "tree-random", "options": ["num_nodes=40"]}
    >>> fitted = fit(make_settings({"data": data, "training": {"epochs": 1}, "preset": "none"})).models[0]
    >>> fitted.embed().shape[0], list(fitted.predict())[:3], list(fitted.evaluate())
    (40, ['id', 'prediction', 'confidence'], ['train', 'val', 'test'])
    """

    settings: Settings
    task: Task
    learner: Learner
    preprocessor: Preprocessor
    shape: Shape
    own: Prepared | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    folder: RunFolder | None = None

    def training_data(self) -> Prepared:
        """The data set and problem it was trained on, from memory or from the folder's own copy."""
        if self.own is None:
            if self.folder is None:
                raise RunError("this model does not know the data it was trained on; give some")
            dataset = self.folder.data()
            if dataset.num_nodes != self.shape.num_nodes:
                raise RunError(
                    f"{self.folder.path}: a model of {self.shape.num_nodes:,} nodes, and data of {dataset.num_nodes:,}"
                )
            problem = self.folder.problem(self.task, dataset.graph)
            stored = dataset.inputs(self.settings.task.name, self.settings.data.protocol, problem.graph)
            try:
                features = self.preprocessor.transform(stored, problem.graph).to(number_type(self.settings))
            except (AttributeError, IndexError, KeyError, TypeError, RuntimeError) as error:
                raise RunError(
                    f"the preprocessing stored in a model.safetensors of {self.folder.path} does not fit its data "
                    f"({type(error).__name__}: {_first_line(error)})"
                ) from None
            self.own = Prepared(dataset, problem.with_features(features), self.preprocessor)
        return self.own

    def inputs(self, dataset: Dataset | None = None) -> tuple[Features, Graph, Dataset]:
        """Features and graph that the model is given for a data set: on its own, exactly those it was trained with."""
        if dataset is None:
            own = self.training_data()
            features, graph, dataset = own.problem.inputs, own.problem.graph, own.dataset
        else:
            stored = dataset.inputs(self.settings.task.name, self.settings.data.protocol, dataset.graph)
            features, graph = self.preprocessor.transform(stored, dataset.graph), dataset.graph
        return features.to(self.device).to(number_type(self.settings)), graph.to(self.device), dataset

    @torch.no_grad()
    def outputs(self, dataset: Dataset | None = None) -> tuple[Tensor, Dataset]:
        """What the model gives for every node."""
        features, graph, known = self.inputs(dataset)
        return self.learner.eval().outputs(features, graph), known

    @torch.no_grad()
    def embed(self, dataset: Dataset | None = None) -> Tensor:
        """Points of the model's space, one for each node."""
        features, graph, _ = self.inputs(dataset)
        points: Tensor = self.learner.eval().model.embed(features, graph)
        return points

    @torch.no_grad()
    def predict(self, dataset: Dataset | None = None, pairs: Tensor | None = None) -> Table:
        """The table of predictions; on the training data with truth and part of each row."""
        with own_files(self.folder if dataset is None else None):
            features, graph, known = self.inputs(dataset)
            outputs = self.learner.eval().outputs(features, graph)
            asked = None if pairs is None else pairs.to(self.device)
            predicted = Predicted(self.learner, outputs, node_ids(known), asked, graph)
            if dataset is None and pairs is None:
                return self.task.held_out_table(predicted, self.training_data().problem)
        return self.task.table(predicted)

    @torch.no_grad()
    def evaluate(self) -> dict[str, Scores]:
        """Scores of all parts of the training data."""
        with own_files(self.folder):
            problem = self.training_data().problem.to(self.device, number_type(self.settings))
            outputs = self.learner.eval().outputs(problem.inputs, problem.graph)
            # Training edges have no non-edges beside them; an estimator's data has no test part.
            scored = PARTS if self.task.outputs is not None else PARTS[1:]
            asked = {name: problem.parts[name] for name in scored if problem.parts[name].size}
            predicted = {name: self.learner.predict(outputs, part.items, problem.graph) for name, part in asked.items()}
            return {name: self.task.scores(predicted[name], part.truth) for name, part in asked.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as plain values and tensors: settings, what was fitted, weights, and the data it was trained on."""
        weights = {name: value.cpu() for name, value in self.learner.state_dict().items()}
        own = None if self.own is None else (self.own.dataset, replace(self.own.problem, task=None))  # type: ignore[arg-type]  # put back when read
        state = (self.settings.to_dict(), self.task.fitted(), weights, self.preprocessor.state(), self.shape, own)
        return _rebuild, state

    def keep(self, folder: str | Path) -> None:
        """Write a run folder with this model alone."""
        run = RunFolder(Path(folder))
        if run.exists:
            raise RunError(f"{run.path} already holds a run; choose another folder")
        own = self.training_data()
        with run.locked():
            self.save(run.seed_folder(self.settings.run.seed) / "model.safetensors")
            run.start(self.settings, own.dataset, own.problem, facts_of(own, is_named=False))

    def save(self, path: Path) -> None:
        described, tensors = self.preprocessor.state()
        meta = {
            "task": {"name": self.settings.task.name, "fitted": self.task.fitted()},
            "preprocessing": described,
            "shape": {"in_features": self.shape.in_features, "num_nodes": self.shape.num_nodes},
            "curvatures": self.learner.model.curvatures(),
        }
        kept = {f"learner/{name}": value for name, value in self.learner.state_dict().items()}
        checkpoint.save(path, kept | {f"preprocessing/{name}": value for name, value in tensors.items()}, meta)


def facts_of(prepared: Prepared, *, is_named: bool) -> dict[str, Any]:
    """What a run folder says of its data, by which changed data is recognised.

    ``is_named`` tells whether the settings name the data, or it was handed over in memory.
    """
    problem = prepared.problem
    return {
        "data": prepared.dataset.name,
        "data_named_by_settings": is_named,
        "data_hash": prepared.dataset.hash,
        "split": problem.split_name,
        "split_hash": problem.split_hash,
        "parts": {name: part.size for name, part in problem.parts.items()},
        "versions": versions(),
    }


def load(folder: str | Path, seed: int | None = None) -> Fitted:
    """The trained model of a run folder (its first finished seed unless one is named), ready to be used.

    >>> import tempfile
    >>> from hgde import fit, make_settings
    >>> data = {"name": "tree-random", "options": ["num_nodes=40"]}
    >>> quick = make_settings({"data": data, "training": {"epochs": 1}, "preset": "none"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fit(quick, f"{folder}/run")
    ...     len(load(f"{folder}/run").predict()["prediction"])
    40
    """
    run = RunFolder(Path(folder))
    settings = run.settings()
    finished = run.finished_seeds()
    if seed is not None and seed not in finished:
        known = ", ".join(map(str, finished)) or "none"
        raise RunError(f"{run.path} has no finished seed {seed} (finished: {known})")
    if not finished:
        raise RunError(f"{run.path} has no finished model; finish the run with `hgde train --resume {run.path}`")
    path = run.file(f"seed-{finished[0] if seed is None else seed}/model.safetensors")
    tensors, meta = checkpoint.load(path)
    gap = find_gap(meta)
    if gap is not None:
        raise RunError(f"{path} is damaged: field {gap!r} is not a finite number")
    described, stored_shape, stored_task = (
        checkpoint.read_field(path, meta, name, dict) for name in ("preprocessing", "shape", "task")
    )
    try:
        with (
            untrusted(),
            Allowance(tensors),
        ):  # settings also name metrics, decoders and steps, which are looked up only now
            task = settings.task.entry.from_fitted(settings.task.options, stored_task["fitted"])
            preprocessor = Preprocessor.from_state(described, checkpoint.part_of(tensors, "preprocessing/"))
            shape = Shape(int(stored_shape["in_features"]), int(stored_shape["num_nodes"]), task.outputs)
            if shape.in_features != preprocessor.num_outputs:
                raise RunError(f"{shape.in_features} inputs are expected, {preprocessor.num_outputs} are prepared")
            learner = build_learner(settings, task, shape, randomness.make_generator(0))
    except KeyError as error:
        raise RunError(f"{path} is damaged: field {error} is missing") from None
    except (ArithmeticError, AttributeError, IndexError, MemoryError, TypeError, ValueError, RuntimeError) as error:
        raise RunError(f"{path} does not fit the settings of its run: {_first_line(error)}") from None
    checkpoint.load_weights(learner, checkpoint.part_of(tensors, "learner/"), str(path))
    problem = model_problem(learner)
    if problem is not None:
        raise RunError(f"{path} is damaged: {problem}")
    device = choose_device(settings.run.device)
    return Fitted(settings, task, learner.to(device).eval(), preprocessor, shape, None, device, run)


def _rebuild(
    stored: dict[str, Any],
    fitted: dict[str, Any],
    weights: dict[str, Tensor],
    preprocessing: tuple[dict[str, Any], dict[str, Tensor]],
    shape: Shape,
    own: tuple[Dataset, Problem] | None,
) -> Fitted:
    settings = make_settings(stored)
    task = settings.task.entry.from_fitted(settings.task.options, fitted)
    preprocessor = Preprocessor.from_state(*preprocessing)
    learner = build_learner(settings, task, shape, randomness.make_generator(0))
    learner.load_state_dict(weights)
    known = None if own is None else Prepared(own[0], replace(own[1], task=task), preprocessor)
    device = choose_device(settings.run.device)
    return Fitted(settings, task, learner.to(device).eval(), preprocessor, shape, known, device)


def node_ids(dataset: Dataset) -> Array:
    """Names of the nodes, or their numbers where they have none."""
    return np.array(dataset.ids, dtype=object) if dataset.ids is not None else np.arange(dataset.num_nodes)


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
