"""What the estimators share: settings from parameters, fitting through the pipeline, use, saving and loading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from hgde import pipeline
from hgde.data import Dataset
from hgde.data.columns import Columns
from hgde.estimators.inputs import Given, as_features, as_graph, chosen, fingerprint, is_frame, unpack
from hgde.estimators.parameters import is_given, settings_of_task
from hgde.files import write_atomically
from hgde.graph import Features, Graph
from hgde.pipeline import Fitted, RunFolder, Settings, make_settings
from hgde.pipeline.progress import TrainingBar
from hgde.pipeline.settings import place_flat
from hgde.registry import refuse_unloaded, untrusted
from hgde.sections import nested, overlay
from hgde.tasks import Problem

Array = np.ndarray[Any, Any]


class HGDEEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Base of the estimators; their parameters are the settings of the same name."""

    task: ClassVar[str]
    fixed: ClassVar[dict[str, Any]] = {}
    """Settings of the task that are the estimator's own; a parameter that was set wins."""
    _fitted: Fitted

    def settings(self) -> Settings:
        """The parameters, checked, as settings of a run. Those that nobody set are left to preset and declaration."""
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, got {self.validation_fraction}")
        state = self.random_state
        seed = int(state) if isinstance(state, int | np.integer) else int(check_random_state(state).randint(2**31 - 1))
        flat = {}
        for name, leaf in settings_of_task(self.task).items():
            value = self._plain(name, getattr(self, name))
            if is_given(leaf, value):
                flat[name] = value
        below = {"task": {"name": self.task, **self.fixed}, "run": {"seed": seed}}
        given = overlay(below, nested(place_flat(flat, below)))
        return make_settings(overlay(given, nested(self.options or {})))

    def _plain(self, name: str, value: Any) -> Any:
        """A parameter in the form that settings take."""
        return value

    # --- fitting

    def _rows(self, X: Any, *, reset: bool) -> Features | Columns:
        """Validated features: a DataFrame keeps its named columns of any kind, arrays must be numbers."""
        if isinstance(X, Columns) or is_frame(X):
            columns = X if isinstance(X, Columns) else Columns.from_frame(X)
            if reset:
                # Later tables are matched by name, and refused by name, when they are preprocessed.
                self.n_features_in_ = len(columns)
                self.feature_names_in_ = np.array(columns.names, dtype=object)
            return columns
        rows = validate_data(self, X, accept_sparse="csr", dtype=["float64", "float32"], reset=reset)
        return as_features(rows)

    def _start(self, given: Given, settings: Settings) -> Dataset:
        """The data set to fit on, without targets; remembers what predictions need of it."""
        rows = self._rows(given.rows, reset=True)
        self.graph_ = as_graph(given.graph, rows, settings.data.neighbours, given.names)
        self._given_graph = given.graph is not None
        self._trained_on = fingerprint(rows)
        return Dataset("X", self.graph_, rows)

    def _train(self, dataset: Dataset, problem: Problem, settings: Settings) -> None:
        start = self._fitted.learner.state_dict() if self.warm_start and hasattr(self, "_fitted") else None
        with TrainingBar(quiet=not self.verbose) as bar:
            result = pipeline.fit(settings, dataset=dataset, problem=problem, reporter=bar, start=start)
        outcome = result.summary.outcomes[0]
        self._fitted = result.models[0]
        self.curvature_ = -outcome.curvatures.get("diffusion", 0.0)
        self.n_iter_ = outcome.epochs
        self.best_epoch_ = outcome.best_epoch
        self.validation_score_ = outcome.validation[problem.task.metric.name]
        self.history_ = outcome.history

    # --- use

    def _dataset(self, given: Given) -> Dataset:
        """Nodes to predict; their graph is given, or the known one, or built."""
        rows = self._rows(given.rows, reset=False)
        if given.graph is None and fingerprint(rows) == self._trained_on:
            graph: Graph = self.graph_
        elif given.graph is None and self._given_graph:
            raise ValueError(
                f"{type(self).__name__} was fitted with a graph, and these rows are not the ones it was fitted on: "
                "give their graph too (graph=... or edge_index=...)"
            )
        else:
            graph = as_graph(given.graph, rows, self._fitted.settings.data.neighbours, given.names)
        return Dataset("X", graph, rows)

    def _outputs(self, X: Any, graph: Any, edge_index: Any) -> torch.Tensor:
        check_is_fitted(self)
        return chosen(X, self._fitted.outputs(self._dataset(unpack(X, None, graph, edge_index)))[0])

    def transform(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """Points of the embedding's space, ``[N, width]``; on the Poincaré ball its curvature is ``curvature_``."""
        check_is_fitted(self)
        return chosen(X, self._fitted.embed(self._dataset(unpack(X, None, graph, edge_index)))).cpu().numpy()

    def fit_transform(self, X: Any, y: Any = None, *, graph: Any = None, edge_index: Any = None) -> Array:
        """``fit``, then ``transform`` of the same nodes."""
        points: Array = self.fit(X, y, graph=graph, edge_index=edge_index).transform(
            X, graph=graph, edge_index=edge_index
        )
        return points

    def fit(self, X: Any, y: Any = None, *, graph: Any = None, edge_index: Any = None) -> Self:
        raise NotImplementedError

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """``z0, z1, ...``: the coordinates."""
        check_is_fitted(self)
        return np.array([f"z{k}" for k in range(self._n_features_out)], dtype=object)

    @property
    def _n_features_out(self) -> int:
        model = self._fitted.learner.model
        return model.manifold.ambient(int(getattr(self._fitted.settings.model.options, "width", 0)))

    # --- keeping

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator as a run folder, which the command line reads too (``hgde predict FOLDER``)."""
        check_is_fitted(self)
        self._fitted.keep(folder)
        own = {
            "estimator": type(self).__name__,
            "parameters": {name: _jsonable(value) for name, value in self.get_params(deep=False).items()},
            "fitted": self._kept() | {"n_iter_": self.n_iter_, "best_epoch_": self.best_epoch_},
            "features": {"count": self.n_features_in_, "names": _names(getattr(self, "feature_names_in_", None))},
            "given_graph": self._given_graph,
            "trained_on": self._trained_on,
        }
        write_atomically(Path(folder) / "estimator.json", (json.dumps(own, indent=2) + "\n").encode())

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A saved estimator, fitted. Nothing in the folder is executed."""
        run = RunFolder(Path(folder))
        own = run.read("estimator.json")
        if own.get("estimator") != cls.__name__:
            raise pipeline.RunError(f"{folder} holds a {own.get('estimator')}, not a {cls.__name__}")
        kinds = {"parameters": dict, "features": dict, "fitted": dict, "given_graph": bool, "trained_on": str}
        for name, kind in kinds.items():
            if not isinstance(own.get(name), kind):
                raise pipeline.RunError(f"{run.path / 'estimator.json'} is damaged: it has no {kind.__name__} {name!r}")
        unknown = sorted(set(own["parameters"]) - set(cls().get_params()))
        if unknown:
            raise pipeline.RunError(f"{run.path / 'estimator.json'}: there is no parameter {unknown[0]!r}")
        for name, value in own["parameters"].items():
            if isinstance(value, str) and name != "device":
                with untrusted():
                    refuse_unloaded(value)
        try:
            return cls._from_folder(run, own)
        except (AttributeError, KeyError, TypeError) as error:
            raise pipeline.RunError(f"{run.path / 'estimator.json'} is damaged ({error!r})") from None

    @classmethod
    def _from_folder(cls, run: RunFolder, own: dict[str, Any]) -> Self:
        made = cls(**own["parameters"])
        made._fitted = pipeline.load(run.path)
        made.graph_ = made._fitted.training_data().dataset.graph
        made.n_features_in_ = own["features"]["count"]
        if own["features"]["names"] is not None:
            made.feature_names_in_ = np.array(own["features"]["names"], dtype=object)
        made._given_graph, made._trained_on = own["given_graph"], own["trained_on"]
        made._restore(own["fitted"])
        made.curvature_ = -made._fitted.learner.model.curvatures().get("diffusion", 0.0)
        return made

    def _kept(self) -> dict[str, Any]:
        return {}

    def _restore(self, kept: dict[str, Any]) -> None:
        self.n_iter_, self.best_epoch_ = kept["n_iter_"], kept["best_epoch_"]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = False
        return tags


def _names(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in names]


def _jsonable(value: Any) -> Any:
    if isinstance(value, np.random.RandomState):
        return None
    return value.item() if isinstance(value, np.generic) else value
