"""The trivial baselines every table shows: what is reached without a graph model at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.graph import SparseFeatures
from hgde.training.metrics import METRICS
from hgde.training.tasks import LinkTask, NodeTask, Task


def trivial_baselines(task: Task, metric: str) -> dict[str, float]:
    """Test scores of majority, logistic regression and a decision tree; for links also of degrees and of likeness."""
    return _for_nodes(task, metric) if isinstance(task, NodeTask) else _for_links(task, metric)


def _fitted_scores(train_x: Any, train_y: Any, test_x: Any, columns: int) -> dict[str, Tensor]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    models = {
        "logistic regression": LogisticRegression(max_iter=300),
        "decision tree": DecisionTreeClassifier(random_state=0, min_samples_leaf=2),
    }
    scores = {}
    for name, model in models.items():
        model.fit(train_x, train_y)
        full = np.full((test_x.shape[0], columns), -np.inf)
        full[:, model.classes_] = np.log(model.predict_proba(test_x) + 1e-12)
        scores[name] = torch.from_numpy(full)
    return scores


def _for_nodes(task: NodeTask, metric: str) -> dict[str, float]:
    x = task.features.to_scipy() if isinstance(task.features, SparseFeatures) else task.features.cpu().numpy()
    train, test = task.train.cpu().numpy(), task.test.cpu().numpy()
    labels, classes = task.train_labels.cpu(), task.num_classes or 0
    truth = task._test_labels.cpu()
    share = torch.bincount(labels, minlength=classes).double().expand(len(test), -1)
    scores = {"majority": share} | _fitted_scores(x[train], labels.numpy(), x[test], classes)
    return {name: METRICS[metric](values, truth) for name, values in scores.items()}


def _for_links(task: Task, metric: str) -> dict[str, float]:
    assert isinstance(task, LinkTask)
    x = task.features.to_scipy() if isinstance(task.features, SparseFeatures) else task.features.cpu().numpy()
    generator = torch.Generator().manual_seed(0)
    most = 20_000
    positive = task.train_pos[:, torch.randperm(task.train_pos.shape[1], generator=generator)[:most]]
    negative = task.split.sample_training_negatives(positive.shape[1], generator)
    pairs = torch.cat([positive, negative], 1).cpu().numpy()
    labels = np.r_[np.ones(positive.shape[1], int), np.zeros(negative.shape[1], int)]
    held = task._test_pairs.cpu().numpy()

    def between(pair: Any) -> Any:
        difference = x[pair[0]] - x[pair[1]]
        return abs(difference)

    truth = task._test_labels.cpu()
    degree = task.graph.degree.cpu().double()
    scores = {"degrees": degree[held[0]].log1p() + degree[held[1]].log1p()}
    fitted = _fitted_scores(between(pairs), labels, between(held), 2)
    scores |= {name: values[:, 1] - values[:, 0] for name, values in fitted.items()}
    return {name: METRICS[metric](values, truth) for name, values in scores.items()}
