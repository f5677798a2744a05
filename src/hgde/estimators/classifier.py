"""Classify nodes, few of them labelled."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_consistent_length, check_is_fitted

from hgde.data import Dataset
from hgde.data.splits import NodeSplit
from hgde.estimators.base import Array, HGDEEstimator
from hgde.estimators.inputs import unpack
from hgde.training.prepare import node_task


class HGDEClassifier(ClassifierMixin, HGDEEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Node classifier by hyperbolic graph diffusion.

    Example::

        model = HGDEClassifier(width=16, time=8).fit(X, y, graph=adjacency)   # y == -1: not labelled
        model.predict(X)                                                      # every node, labelled or not

    ``X [N, F]`` may be a numpy array, a torch tensor, a scipy sparse matrix, or an object that holds graph, features
    and labels together (PyG ``Data``, networkx graph, ``hgde.Dataset``). A graph may be a ``hgde.Graph``, an adjacency
    matrix (scipy or array), a networkx graph whose nodes are the rows in order, or ``edge_index [2, E]``; edges are
    used in both directions. Without one, each row is joined with its nearest neighbours (``neighbours``, itself
    counted). Nodes are classified together: a node's class depends on the rows around it.

    Attributes: ``classes_``, ``graph_``, ``curvature_``, ``n_features_in_``, ``n_iter_``, ``best_epoch_``,
    ``validation_score_``, ``history_``.
    """

    def fit(
        self, X: Any, y: Any = None, *, graph: Any = None, edge_index: Any = None, validation: Any = None
    ) -> HGDEClassifier:
        """Learn from the labelled nodes.

        Args:
            X: features of all nodes, labelled or not.
            y: a class per node of any type; ``-1`` (or the text "-1", or ``None``) where there is none.
            graph, edge_index: the graph, see above.
            validation: labelled nodes to stop by, as numbers or a mask; drawn by ``validation_fraction`` if not given.
        """
        given = unpack(X, y, graph, edge_index, validation)
        if given.labels is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        settings = self._settings("nodes")
        features, passing = self._start(given.rows, given.graph, settings)
        codes = self._encode(given.labels, int(features.shape[0]))
        train, val = self._split(codes, given.validation, settings.seed)
        split = NodeSplit(train, val, torch.empty(0, dtype=torch.int64), "estimator")
        dataset = Dataset("X", passing, features, torch.from_numpy(codes), class_names=[str(k) for k in self.classes_])
        self._train(node_task(dataset, split, settings, allow_overlap=True), settings)
        return self

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
            found = f"{self.classes_.size} class" + ("" if self.classes_.size == 1 else "es")
            raise ValueError(
                f"a classifier needs two classes, y holds {found} in {labels.size} samples "
                "(-1 marks a node without label)"
            )
        codes = np.full(num_nodes, -1, dtype=np.int64)
        codes[~unlabelled] = known
        return codes

    def _split(self, codes: Array, validation: Any, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Labelled nodes to learn from and to stop by."""
        labelled = np.flatnonzero(codes >= 0)
        if validation is not None:
            held = np.asarray(validation)
            held = np.flatnonzero(held) if held.dtype == bool else held.astype(np.int64)
        else:
            held = _draw(codes, self.validation_fraction, seed)
        train = np.setdiff1d(labelled, held)
        # With one label a class nothing can be held back: stop by the training nodes themselves.
        return torch.from_numpy(train), torch.from_numpy(held if held.size else labelled)

    @torch.no_grad()
    def predict_proba(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """Probabilities ``[N, classes]``, columns in the order of ``classes_``."""
        check_is_fitted(self)
        given = unpack(X, None, graph, edge_index)
        features, found = self._inputs(given.rows, given.graph)
        model, device = self._model()
        logits = model(features.to(device), found.to(device))
        probabilities: Array = torch.softmax(logits.double(), -1).cpu().numpy()
        return probabilities

    def predict(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """The class of every node, in the type ``y`` had."""
        probabilities = self.predict_proba(X, graph=graph, edge_index=edge_index)
        chosen: Array = self.classes_[probabilities.argmax(1)]
        return chosen

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, graph: Any = None, edge_index: Any = None
    ) -> float:
        """Accuracy on the labelled nodes."""
        given = unpack(X, y, graph, edge_index)
        if given.labels is None:
            raise ValueError("score needs the true classes y")
        truth = _column(np.asarray(given.labels))
        predicted = self.predict(given.rows, graph=given.graph)
        if truth.dtype.kind in "UO":
            truth = np.array([str(-1 if label is None else label) for label in truth])
            predicted = predicted.astype(str)
            known = truth != "-1"
        else:
            known = truth != -1
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(truth[known], predicted[known], sample_weight=weight))


def _column(y: Array) -> Array:
    """A column ``[N, 1]`` as ``[N]``, with scikit-learn's warning."""
    from sklearn.utils import column_or_1d

    flat: Array = column_or_1d(y, warn=True)
    return flat


def _draw(codes: Array, fraction: float, seed: int) -> Array:
    """A share of every class, always leaving one of it to learn from; at least one node if any class has two."""
    random = np.random.RandomState(seed)
    classes = [random.permutation(np.flatnonzero(codes == k)) for k in range(int(codes.max()) + 1)]
    held = [members[: min(round(fraction * members.size), members.size - 1)] for members in classes]
    if not any(part.size for part in held):
        largest = max(classes, key=len)
        held = [largest[: min(1, largest.size - 1)]]
    return np.sort(np.concatenate(held))
