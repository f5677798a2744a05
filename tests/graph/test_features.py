"""Sparse features agree with the dense matrix they stand for."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from hgde.graph import SparseFeatures


@pytest.fixture
def pair():
    random = np.random.RandomState(0)
    dense = random.randn(9, 6) * (random.rand(9, 6) < 0.4)
    dense[4] = 0
    return torch.from_numpy(dense).float(), SparseFeatures.from_scipy(csr_matrix(dense))


def test_round_trips(pair):
    dense, sparse = pair
    assert torch.equal(sparse.to_dense(), dense)
    np.testing.assert_array_equal(sparse.to_scipy().toarray(), dense.numpy())


def test_transpose(pair):
    dense, sparse = pair
    indptr, rows, order = sparse.by_column
    back = torch.zeros(dense.T.shape)
    columns = torch.repeat_interleave(torch.arange(dense.shape[1]), indptr.diff())
    back[columns, rows] = sparse.values[order]
    assert torch.equal(back, dense.T)


def test_rows_are_selected_and_normalised(pair):
    dense, sparse = pair
    nodes = torch.tensor([4, 0, 8, 0])
    assert torch.equal(sparse.select(nodes).to_dense(), dense[nodes])
    total = dense.abs().sum(1, keepdim=True)
    torch.testing.assert_close(sparse.row_normalised().to_dense(), torch.where(total > 0, dense / total, dense))
    assert not sparse.row_normalised().to_dense()[4].any(), "an empty row stays empty"


def test_conversion_keeps_the_pattern(pair):
    dense, sparse = pair
    double = sparse.to(torch.float64)
    assert double.dtype == torch.float64
    assert torch.equal(double.to_dense(), dense.double())
