"""Learn from the edges alone: predict links, or embed nodes without labels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from hgde.data.splits import link_split
from hgde.estimators.base import Array, HGDEEstimator
from hgde.estimators.inputs import unpack
from hgde.estimators.parameters import with_parameters
from hgde.graph import GraphError
from hgde.tasks.links import LinkPrediction


class _FromEdges(HGDEEstimator):
    task = "links"

    def fit(self, X: Any, y: Any = None, *, graph: Any = None, edge_index: Any = None) -> Self:
        """Learn to tell edges from non-edges; a share ``validation_fraction`` of the edges is held back to stop by.

        ``y`` is there for pipelines and not used. ``X`` and the graph may be all that :class:`HGDEClassifier` takes.
        """
        settings = self.settings()
        dataset = self._start(unpack(X, None, graph, edge_index), settings)
        num_edges = int(self.graph_.undirected_edges.shape[1])
        if num_edges < 2:
            raise GraphError(
                f"links are learned from at least 2 edges; this graph of {self.graph_.num_nodes} nodes "
                f"(n_samples={self.graph_.num_nodes}) has {num_edges}"
            )
        share = max(self.validation_fraction, 1.000001 / num_edges)
        split = link_split(self.graph_, settings.run.seed, "clean", val_share=share, test_share=0.0)
        self._train(dataset, LinkPrediction.pose_on(dataset, settings.task.options, split), settings)  # type: ignore[arg-type]  # the chosen task's settings
        return self


@with_parameters("links")
class HGDEEmbedder(_FromEdges):
    """Embed nodes in the Poincaré ball without labels: joined nodes near each other, others apart.

    Example::

        points = HGDEEmbedder(width=2).fit_transform(X, graph=adjacency)    # [N, 2], inside the disk

    Attributes: ``graph_``, ``curvature_``, ``n_features_in_``, ``n_iter_``, ``best_epoch_``, ``validation_score_``.

    >>> import numpy as np
    >>> ring = np.array([np.arange(30), (np.arange(30) + 1) % 30])
    >>> HGDEEmbedder(width=2, epochs=2, preset="none").fit_transform(np.eye(30), edge_index=ring).shape
    (30, 2)
    """

    # The points alone are to say who is linked; nothing beside them may explain it.
    fixed: ClassVar[dict[str, Any]] = {"structure": False}


@with_parameters("links")
class HGDELinkPredictor(_FromEdges):
    """Predict whether two nodes are linked, from their distance in the ball (Fermi-Dirac decoder).

    Example::

        model = HGDELinkPredictor().fit(X, graph=adjacency)
        model.predict_proba([[0, 5], [3, 9]])[:, 1]                         # pairs of the nodes it was fitted on
        model.predict_proba(pairs, X=other_rows, graph=other_graph)         # pairs of other nodes

    Attributes: ``classes_`` (0: no link, 1: link), ``embedding_`` of the fitted nodes, and those of the embedder.

    >>> import numpy as np
    >>> ring = np.array([np.arange(30), (np.arange(30) + 1) % 30])
    >>> model = HGDELinkPredictor(epochs=2, preset="none").fit(np.eye(30), edge_index=ring)
    >>> model.predict_proba([[0, 1], [0, 15]]).shape
    (2, 2)
    """

    def fit(self, X: Any, y: Any = None, *, graph: Any = None, edge_index: Any = None) -> Self:
        super().fit(X, y, graph=graph, edge_index=edge_index)
        self.classes_ = np.array([0, 1])
        self.embedding_ = self.transform(X, graph=graph, edge_index=edge_index)
        return self

    def _restore(self, kept: dict[str, Any]) -> None:
        super()._restore(kept)
        self.classes_ = np.array([0, 1])
        self.embedding_ = self._fitted.embed(self._fitted.training_data().dataset).cpu().numpy()

    @torch.no_grad()
    def predict_proba(self, pairs: Any, *, X: Any = None, graph: Any = None, edge_index: Any = None) -> Array:
        """Probabilities ``[M, 2]`` of no link and of a link, for pairs ``[M, 2]`` of row numbers."""
        check_is_fitted(self)
        if X is None and (graph is not None or edge_index is not None):
            raise ValueError("a graph without its rows was given; pass X too, or neither for the fitted nodes")
        if X is None:
            points, seen = torch.as_tensor(self.embedding_), self.graph_
        else:
            dataset = self._dataset(unpack(X, None, graph, edge_index))
            points, seen = self._fitted.embed(dataset), dataset.graph
        nodes = _checked_pairs(pairs, len(points))
        device = self._fitted.device
        odds = self._fitted.learner.predict(points.to(device), nodes.to(device), seen.to(device))
        linked = torch.sigmoid(odds.double()).cpu().numpy()
        return np.stack([1 - linked, linked], axis=1)

    def predict(self, pairs: Any, *, X: Any = None, graph: Any = None, edge_index: Any = None) -> Array:
        """1 where a link is more likely than not."""
        probabilities = self.predict_proba(pairs, X=X, graph=graph, edge_index=edge_index)
        chosen: Array = self.classes_[probabilities.argmax(1)]
        return chosen

    def score(self, pairs: Any, y: Any, *, X: Any = None, graph: Any = None, edge_index: Any = None) -> float:
        """Area under the ROC curve for pairs whose truth is ``y`` (1: linked)."""
        probabilities = self.predict_proba(pairs, X=X, graph=graph, edge_index=edge_index)
        return float(roc_auc_score(np.asarray(y), probabilities[:, 1]))


def _checked_pairs(pairs: Any, num_nodes: int) -> torch.Tensor:
    nodes = torch.as_tensor(pairs if isinstance(pairs, torch.Tensor) else np.asarray(pairs))
    if nodes.dim() != 2 or nodes.shape[1] != 2 or nodes.is_floating_point():
        raise ValueError(
            f"pairs must be whole numbers of shape [M, 2], a pair a row; got {nodes.dtype} {list(nodes.shape)}"
        )
    if nodes.numel() and (int(nodes.min()) < 0 or int(nodes.max()) >= num_nodes):
        row = int(((nodes < 0) | (nodes >= num_nodes)).any(1).nonzero()[0])
        raise ValueError(f"pair {row} is {nodes[row].tolist()}, but the nodes are 0 to {num_nodes - 1}")
    return nodes.to(torch.int64).T
