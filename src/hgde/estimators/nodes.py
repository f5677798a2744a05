"""Estimators on nodes, some of which are labelled: classes, values, label sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_consistent_length, check_is_fitted

from hgde.data import Dataset
from hgde.data.splits import NodeSplit
from hgde.estimators.base import Array, HGDEEstimator
from hgde.estimators.inputs import Nodes, unpack
from hgde.estimators.parameters import with_parameters
from hgde.tasks import TASKS
from hgde.tasks.metrics import VALUES

_EMPTY = torch.empty(0, dtype=torch.int64)


class _OnNodes(HGDEEstimator):
    """What the three have in common: labelled nodes are split into some to learn from and some to stop by."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        graph: Any = None,
        edge_index: Any = None,
        validation: Any = None,
    ) -> Self:
        """Learn from the nodes whose target is known.

        Args:
            X: features of all nodes, labelled or not; or :class:`Nodes`, whose chosen ones have the targets ``y``.
            y: a target per node (see above for how unknown ones are marked); may be left out where ``X`` has them.
            sample_weight: how much each node counts in the loss.
            graph, edge_index: the graph, see above.
            validation: labelled nodes to stop by, as numbers or a mask; drawn by ``validation_fraction`` if not given.
        """
        task = TASKS.get(self.task)
        given = unpack(X, y, graph, edge_index, validation, task.kind)
        if given.targets is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        settings = self.settings()
        dataset, strata = self._with_targets(self._start(given, settings), given.targets)
        if sample_weight is not None:
            weights = X.spread(sample_weight, VALUES) if isinstance(X, Nodes) else sample_weight
            weights = np.nan_to_num(np.asarray(weights)) if isinstance(X, Nodes) else weights
            checked = _check_sample_weight(weights, strata, dtype=np.float64, ensure_non_negative=True)
            dataset = replace(dataset, sample_weights=torch.from_numpy(checked))
        split = self._split(strata, given.validation, settings.run.seed)
        # With one label per class nothing can be held back, and validation nodes are training nodes.
        problem = task.pose_on(dataset, settings.task.options, split, allow_overlap=True)  # type: ignore[attr-defined]  # tasks on nodes have it
        self._train(dataset, problem, settings)
        return self

    def _truth(self, X: Any, y: Any) -> Array:
        """What predictions are scored against: ``y``, or what ``X`` holds of it."""
        if y is None:
            y = unpack(X, kind=TASKS.get(self.task).kind).targets
        if y is None:
            raise ValueError("score needs the true targets y")
        return np.asarray(y)

    def _with_targets(self, dataset: Dataset, targets: Any) -> tuple[Dataset, Array]:
        """The data set with its targets, checked, and for each node the stratum it is drawn from, -1 without target."""
        raise NotImplementedError

    def _split(self, strata: Array, validation: Any, seed: int) -> NodeSplit:
        """``strata`` holds a number for each labelled node, -1 for the others; every stratum gives its share."""
        labelled = np.flatnonzero(strata >= 0)
        if validation is not None:
            held = np.asarray(validation)
            held = np.flatnonzero(held) if held.dtype == bool else held.astype(np.int64)
        else:
            held = _draw(strata, self.validation_fraction, seed)
        train = np.setdiff1d(labelled, held)
        # With one label per class nothing can be held back: stop by the training nodes themselves.
        stop_by = held if held.size else labelled
        return NodeSplit(torch.from_numpy(train), torch.from_numpy(stop_by), _EMPTY, "estimator")


@with_parameters("nodes")
class HGDEClassifier(ClassifierMixin, _OnNodes):  # type: ignore[misc]  # scikit-learn is untyped
    """Node classifier by hyperbolic graph diffusion.

    Example::

        model = HGDEClassifier(width=16, time=8).fit(X, y, graph=adjacency)   # y == -1: not labelled
        model.predict(X)                                                      # every node, labelled or not

    ``X [N, F]`` may be a numpy array, a torch tensor, a scipy sparse matrix, a pandas DataFrame (numbers, categories,
    booleans, gaps), or an object that holds graph, features and labels together (PyG ``Data``, networkx graph,
    ``hgde.Dataset``). A graph may be a ``hgde.Graph``, an adjacency matrix (scipy or array, entries other than 1 being
    weights), a networkx graph (matched to the index of a DataFrame by the names of its nodes), or ``edge_index`` of
    shape ``[2, E]``; edges are used in both directions unless it is a directed ``hgde.Graph``. Without one, each row is
    joined with its nearest neighbours (``neighbours``, itself counted). Nodes are classified together: a node's class
    depends on the rows around it.

    Attributes: ``classes_``, ``graph_``, ``curvature_``, ``n_features_in_``, ``n_iter_``, ``best_epoch_``,
    ``validation_score_``, ``history_``.

    >>> import numpy as np
    >>> X, y = np.eye(6), np.array([0, 0, -1, 1, 1, -1])
    >>> model = HGDEClassifier(epochs=2, preset="none").fit(X, y, edge_index=[[0, 1, 3, 4], [1, 2, 4, 5]])
    >>> model.predict(X).shape
    (6,)
    """

    task = "nodes"

    def _with_targets(self, dataset: Dataset, targets: Any) -> tuple[Dataset, Array]:
        codes = self._encode(targets, dataset.num_nodes)
        names = [str(name) for name in self.classes_]
        return replace(dataset, labels=torch.from_numpy(codes), class_names=names), codes

    def _plain(self, name: str, value: Any) -> Any:
        if name == "class_weight" and isinstance(value, dict):
            return ",".join(f"{key}={weight}" for key, weight in value.items())
        return "none" if name == "class_weight" and value is None else value

    def _encode(self, y: Any, num_nodes: int) -> Array:
        """Numbers of the classes, -1 where there is none; sets ``classes_``."""
        labels = np.asarray(y)
        if labels.dtype == object:
            missing = np.array([label is None for label in labels.ravel()], dtype=bool).reshape(labels.shape)
            labels = np.where(missing, "-1" if any(isinstance(v, str) for v in labels.ravel()) else -1, labels)
        labels = _check_y(_column(labels), multi_output=False, y_numeric=False, estimator=self)
        check_consistent_length(labels, np.empty(num_nodes))
        if labels.dtype == object:
            labels = labels.astype(str) if any(isinstance(v, str) for v in labels) else np.array(labels.tolist())
        unlabelled = (
            labels == ("-1" if labels.dtype.kind == "U" else -1) if labels.dtype.kind != "b" else labels != labels
        )
        check_classification_targets(labels[~unlabelled])
        self.classes_, known = np.unique(labels[~unlabelled], return_inverse=True)
        if self.classes_.size < 2:
            count = f"{self.classes_.size} class" + ("" if self.classes_.size == 1 else "es")
            raise ValueError(
                f"a classifier needs two classes, y holds {count} in {labels.size} samples "
                "(-1 marks a node without label)"
            )
        codes = np.full(num_nodes, -1, dtype=np.int64)
        codes[~unlabelled] = known
        return codes

    def predict_proba(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """Probabilities ``[N, classes]``, columns in the order of ``classes_``."""
        chances: Array = torch.softmax(self._outputs(X, graph, edge_index).double(), -1).cpu().numpy()
        return chances

    def predict(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """The class of every node, in the type ``y`` had."""
        chances = self.predict_proba(X, graph=graph, edge_index=edge_index)
        chosen: Array = self.classes_[chances.argmax(1)]
        return chosen

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, graph: Any = None, edge_index: Any = None
    ) -> float:
        """Accuracy on the labelled nodes."""
        truth = _column(self._truth(X, y))
        predicted = self.predict(X, graph=graph, edge_index=edge_index)
        if truth.dtype.kind in "UO":
            truth = np.array([str(-1 if label is None else label) for label in truth])
            predicted = predicted.astype(str)
            known = truth != "-1"
        else:
            known = truth != -1
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(truth[known], predicted[known], sample_weight=weight))

    def _kept(self) -> dict[str, Any]:
        return {"classes_": self.classes_.tolist()}

    def _restore(self, kept: dict[str, Any]) -> None:
        super()._restore(kept)
        self.classes_ = np.array(kept["classes_"])


@with_parameters("regression")
class HGDERegressor(RegressorMixin, _OnNodes):  # type: ignore[misc]  # scikit-learn is untyped
    """Numbers at nodes by hyperbolic graph diffusion; ``y`` is NaN where a node's value is not known.

    Example::

        model = HGDERegressor().fit(X, y, graph=adjacency)
        model.predict(X)

    ``X`` and the graph may be all that :class:`HGDEClassifier` takes; ``y`` is ``[N]`` or ``[N, targets]``.

    >>> import numpy as np
    >>> X, y = np.eye(6), np.array([0.1, 0.2, np.nan, 0.9, 1.0, np.nan])
    >>> model = HGDERegressor(epochs=2, preset="none").fit(X, y, edge_index=[[0, 1, 3, 4], [1, 2, 4, 5]])
    >>> model.predict(X).shape
    (6,)
    """

    task = "regression"

    def _with_targets(self, dataset: Dataset, targets: Any) -> tuple[Dataset, Array]:
        values = np.asarray(targets)
        if values.dtype.kind not in "fiub":
            try:
                values = values.astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    f"y must be numbers (NaN where unknown), got {values.dtype}: Unknown label type"
                ) from None
        values = values.astype(np.float64)
        if np.isinf(values).any():
            raise ValueError("Input y contains infinity; use NaN where a value is not known")
        self._is_flat = values.ndim == 1
        if values.ndim == 2 and values.shape[1] == 1:
            values = _column(values)
            self._is_flat = True
        check_consistent_length(values, np.empty(dataset.num_nodes))
        table = values.reshape(len(values), -1)
        known = np.where(np.isfinite(table).any(1), 0, -1)
        if (known == 0).sum() < 2:
            raise ValueError(
                f"a regressor needs two known values, y holds {int((known == 0).sum())} in {len(table)} samples"
            )
        names = [f"y{k}" for k in range(table.shape[1])]
        return replace(dataset, values=torch.from_numpy(np.ascontiguousarray(table)), target_names=names), known

    def predict(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """The value of every node, ``[N]`` or ``[N, targets]`` as ``y`` was."""
        outputs = self._outputs(X, graph, edge_index)
        values: Array = self._fitted.task.natural(outputs).cpu().numpy()
        return values[:, 0] if self._is_flat else values

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, graph: Any = None, edge_index: Any = None
    ) -> float:
        """R² on the nodes whose value is known."""
        truth = np.asarray(self._truth(X, y), dtype=np.float64)
        truth = truth[:, 0] if self._is_flat and truth.ndim == 2 else truth
        predicted = self.predict(X, graph=graph, edge_index=edge_index)
        known = np.isfinite(truth.reshape(len(truth), -1)).all(1)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(r2_score(truth[known], predicted[known], sample_weight=weight))

    def _kept(self) -> dict[str, Any]:
        return {"is_flat": self._is_flat}

    def _restore(self, kept: dict[str, Any]) -> None:
        super()._restore(kept)
        self._is_flat = bool(kept["is_flat"])


@with_parameters("multilabel")
class HGDEMultiLabelClassifier(_OnNodes):
    """Any number of labels per node; ``y [N, L]`` holds 1, 0, or -1 where it is not known.

    Example::

        model = HGDEMultiLabelClassifier().fit(X, Y, graph=adjacency)
        model.predict_proba(X)[:, 0]                                  # probability of the first label

    ``X`` and the graph may be all that :class:`HGDEClassifier` takes.

    >>> import numpy as np
    >>> X, Y = np.eye(6), np.array([[0, 1], [0, 1], [1, 0], [1, 0], [1, 1], [0, 0]])
    >>> model = HGDEMultiLabelClassifier(epochs=2, preset="none").fit(X, Y, edge_index=[[0, 1, 3, 4], [1, 2, 4, 5]])
    >>> model.predict(X).shape
    (6, 2)
    """

    task = "multilabel"

    def _with_targets(self, dataset: Dataset, targets: Any) -> tuple[Dataset, Array]:
        labels = np.asarray(targets)
        if labels.ndim != 2 or not np.isin(labels, (-1, 0, 1)).all():
            raise ValueError(
                "y must be of shape [N, labels] and hold 0, 1, or -1 where unknown; got "
                f"{labels.dtype} {list(labels.shape)}"
            )
        check_consistent_length(labels, np.empty(dataset.num_nodes))
        names = [f"y{k}" for k in range(labels.shape[1])]
        known = np.where((labels >= 0).any(1), 0, -1)
        return replace(dataset, label_sets=torch.from_numpy(labels.astype(np.int64)), target_names=names), known

    def predict_proba(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """Probability of each label, ``[N, L]``."""
        chances: Array = torch.sigmoid(self._outputs(X, graph, edge_index).double()).cpu().numpy()
        return chances

    def predict(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """1 where a label is more likely than not, ``[N, L]``."""
        return (self.predict_proba(X, graph=graph, edge_index=edge_index) > 0.5).astype(np.int64)

    def score(self, X: Any, y: Any = None, *, graph: Any = None, edge_index: Any = None) -> float:
        """Micro-F1 over what is known."""
        check_is_fitted(self)
        truth = self._truth(X, y)
        known = truth >= 0
        return float(f1_score(truth[known], self.predict(X, graph=graph, edge_index=edge_index)[known]))


def _column(y: Array) -> Array:
    """A column ``[N, 1]`` as ``[N]``, with scikit-learn's warning."""
    from sklearn.utils import column_or_1d

    flat: Array = column_or_1d(y, warn=True)
    return flat


def _draw(strata: Array, fraction: float, seed: int) -> Array:
    """A share of every stratum, always leaving one of it to learn from; at least one node if any stratum has two."""
    random = np.random.RandomState(seed)
    groups = [random.permutation(np.flatnonzero(strata == k)) for k in range(int(strata.max()) + 1)]
    held = [members[: min(round(fraction * members.size), members.size - 1)] for members in groups]
    if not any(part.size for part in held):
        largest = max(groups, key=len)
        held = [largest[: min(1, largest.size - 1)]]
    return np.sort(np.concatenate(held))
