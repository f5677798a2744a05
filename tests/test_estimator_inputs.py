"""What may be handed to an estimator means the same in every form."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from hgde import HGDEClassifier
from hgde.estimators.inputs import as_graph
from hgde.pipeline import RunError

ROWS = torch.zeros(3, 1)


def test_weights_of_a_matrix_or_object_are_used():
    table = np.array([[0, 0.5, 0], [0.5, 0, 2.0], [0, 2.0, 0]])
    held = SimpleNamespace(edge_index=torch.tensor([[0, 1], [1, 2]]), edge_weight=torch.tensor([0.5, 2.0]))
    for given in (table, csr_matrix(table), held):
        assert as_graph(given, ROWS, 2).weights.tolist() == [0.5, 0.5, 2.0, 2.0]
    assert as_graph((table > 0).astype(int), ROWS, 2).weights is None


def test_a_damaged_description_is_refused_in_words(tmp_path):
    (tmp_path / "estimator.json").write_text('{"estimator": "HGDEClassifier", "parameters": {"nonsense": 1}}')
    with pytest.raises(RunError, match=r"estimator\.json is damaged"):
        HGDEClassifier.load(tmp_path)
