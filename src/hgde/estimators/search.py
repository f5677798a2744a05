"""Parameters chosen by cross-validation on one graph: labels are hidden in turn, rows and edges stay."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from hgde.estimators.base import Array
from hgde.estimators.inputs import Nodes, unpack
from hgde.estimators.nodes import HGDEClassifier


class HGDEClassifierCV(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A node classifier whose parameters are chosen by cross-validation on its graph.

    The labels of one fold at a time are hidden, the classifier is fitted on the whole graph with the others, and scored
    on the hidden ones. scikit-learn's ``GridSearchCV`` would take the rows away instead, and tear the graph apart
    (unless it is given :class:`Nodes`).

    Args:
        estimator: an :class:`HGDEClassifier`, or a ``Pipeline`` that ends in one; a default one if not given.
        grid: values to try by parameter, or several such, as of ``GridSearchCV``.
        cv: how many folds, stratified by class; or a splitter of scikit-learn.
        metric: a function of true and predicted classes, larger is better.

    Attributes: ``best_estimator_`` (fitted with all labels), ``best_params_``, ``best_score_``, ``cv_results_``,
    ``classes_``.

    >>> import numpy as np
    >>> from hgde import HGDEClassifier
    >>> ring = np.array([np.arange(12), (np.arange(12) + 1) % 12])
    >>> quick = HGDEClassifier(epochs=2, preset="none")
    >>> search = HGDEClassifierCV(quick, {"width": [2, 4]}, cv=2).fit(np.eye(12), np.arange(12) // 6, edge_index=ring)
    >>> search.best_params_["width"] in (2, 4)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
        cv: Any = 5,
        metric: Callable[[Array, Array], float] = accuracy_score,
    ) -> None:
        self.estimator, self.grid, self.cv, self.metric = estimator, grid, cv, metric

    def fit(self, X: Any, y: Any = None, *, graph: Any = None, edge_index: Any = None) -> Self:
        """Try every combination, then fit the best on all labels; ``X``, ``y`` and the graph as of the classifier."""
        if isinstance(X, Nodes):
            raise ValueError("the labels are hidden here: give rows and graph as they are, not Nodes")
        given = unpack(X, y, graph, edge_index)
        if given.targets is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        whole = _as_names(given.targets)
        known = np.flatnonzero([name is not None for name in whole])
        base = HGDEClassifier() if self.estimator is None else self.estimator
        folds = list(
            check_cv(self.cv, whole[known].astype(str), classifier=True).split(known, whole[known].astype(str))
        )
        candidates = list(ParameterGrid(self.grid or {}))
        scores: list[list[float]] = []
        for parameters in candidates:
            own = []
            for shown, hidden in folds:
                seen = np.full(len(whole), None, dtype=object)
                seen[known[shown]] = whole[known[shown]]
                fitted = self._fit(clone(base).set_params(**parameters), X, seen, graph, edge_index)
                predicted = self._predict(fitted, X, graph, edge_index)[known[hidden]]
                own.append(float(self.metric(whole[known[hidden]].astype(str), predicted.astype(str))))
            scores.append(own)
        means = [statistics.fmean(own) for own in scores]
        best = int(np.argmax(means))
        self.cv_results_ = {"params": candidates, "mean_test_score": np.array(means), "split_test_scores": scores}
        self.best_params_, self.best_score_ = candidates[best], means[best]
        self.best_estimator_ = self._fit(clone(base).set_params(**candidates[best]), X, y, graph, edge_index)
        self.classes_ = self.best_estimator_.classes_
        return self

    @staticmethod
    def _fit(estimator: Any, X: Any, y: Any, graph: Any, edge_index: Any) -> Any:
        given = {"graph": graph, "edge_index": edge_index}
        last = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
        return estimator.fit(X, y, **{last + name: value for name, value in given.items() if value is not None})

    @staticmethod
    def _predict(estimator: Any, X: Any, graph: Any, edge_index: Any) -> Array:
        given = {"graph": graph, "edge_index": edge_index}
        predicted: Array = estimator.predict(X, **{name: value for name, value in given.items() if value is not None})
        return predicted

    def predict(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """Classes by the best one."""
        check_is_fitted(self)
        return self._predict(self.best_estimator_, X, graph, edge_index)

    def predict_proba(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """Probabilities by the best one."""
        check_is_fitted(self)
        given = {"graph": graph, "edge_index": edge_index}
        known = {name: value for name, value in given.items() if value is not None}
        chances: Array = self.best_estimator_.predict_proba(X, **known)
        return chances


def _as_names(y: Any) -> Array:
    """Classes as objects, ``None`` where there is none."""
    labels = np.asarray(y, dtype=object).copy()
    unknown = [label is None or (not isinstance(label, bool) and str(label) == "-1") for label in labels]
    labels[np.array(unknown, dtype=bool)] = None
    return labels
