"""Sparse features times a matrix."""

import numpy as np
import pytest
import torch
from scipy import sparse

from hgde.graph import SparseFeatures
from hgde.kernels import sparse_matmul
from hgde.kernels.ops import sparse as ops
from hgde.kernels.ops.sparse import draw_keys, drop


def features(dtype=torch.float64, rows=60, columns=40):
    return SparseFeatures.from_scipy(
        sparse.random(rows, columns, 0.1, "csr", random_state=np.random.default_rng(0)), dtype
    )


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_equals_the_dense_product_and_its_gradient(backend):
    x = features()
    weight = torch.randn(40, 7, dtype=torch.float64, requires_grad=True)
    out = sparse_matmul(x, weight, backend=backend)
    torch.testing.assert_close(out, x.to_dense() @ weight, rtol=0, atol=1e-13)
    g = torch.randn(60, 7, dtype=torch.float64)
    (grad,) = torch.autograd.grad(out, weight, g)
    torch.testing.assert_close(grad, x.to_dense().T @ g, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [16, 40, 136, 300])
def test_adding_row_by_row_gives_the_bits_of_the_transpose(width, dtype, monkeypatch):
    """Crowded columns: in one strip or several, the last one narrower, on one thread or two."""
    x = features(dtype, rows=400, columns=12)
    assert x.values.numel() >= ops.CROWDED * 12
    g = torch.randn(400, width, dtype=dtype, generator=torch.Generator().manual_seed(0))
    arguments = (g, x.values, x.indptr, x.indices, 12, True)
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(ops.sparse_product(*arguments))
    finally:
        torch.set_num_threads(before)
    monkeypatch.setattr(ops, "CROWDED", 10**9)
    plain = ops.sparse_product(*arguments)
    assert all(torch.equal(plain, other) for other in found)
    torch.testing.assert_close(plain, x.to_dense().T @ g)


def test_what_does_not_fit_the_cache_goes_by_the_transpose(monkeypatch):
    x = features(rows=400, columns=12)
    x.values[:] = 1
    tall = torch.ones(400, 64, dtype=torch.float64)
    entries = x.values.numel()
    assert ops._strip(entries, 12, tall) > 0
    monkeypatch.setattr(ops, "CACHED", 12 * ops.NARROWEST * 8 - 1)
    assert ops._strip(entries, 12, tall) == 0
    monkeypatch.undo()
    assert ops._strip(ops.CROWDED * 12 - 1, 12, tall) == 0
    assert ops._strip(entries, 12, tall[:, :8]) == 0


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_dropout_keeps_the_mean_and_repeats_with_its_generator(backend):
    x, weight = features(), torch.ones(40, 3, dtype=torch.float64)

    def draw(seed):
        return sparse_matmul(x, weight, 0.4, True, torch.Generator().manual_seed(seed), backend)

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    mean = torch.stack([draw(seed) for seed in range(400)]).mean()
    assert abs(mean / sparse_matmul(x, weight).mean() - 1) < 0.02
    assert torch.equal(sparse_matmul(x, weight, 0.4, False), sparse_matmul(x, weight))
    assert not sparse_matmul(x, weight, 1.0, True, torch.Generator(), backend).any()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_is_independent_from_value_to_value_and_draw_to_draw(p):
    count = 200_000
    ones = torch.ones(count, dtype=torch.float64)
    one, two = (drop(ones, draw_keys(torch.Generator().manual_seed(seed)), p) for seed in range(2))
    assert set(one.tolist()) == {0.0, 1 / (1 - p)}
    kept, again = (one > 0).double(), (two > 0).double()
    spread = p * (1 - p)
    # Five standard deviations of a mean of independent draws.
    allowed = 5 * (spread / count) ** 0.5
    assert abs(kept.mean() - (1 - p)) < allowed
    centred = kept - (1 - p)
    for lag in (1, 2, 3, 64, 1433):
        assert abs((centred[lag:] * centred[:-lag]).mean()) < 5 * spread / count**0.5
    assert abs((centred * (again - (1 - p))).mean()) < 5 * spread / count**0.5


def test_backward_uses_the_values_that_were_dropped_forward():
    x, weight = features(), torch.zeros(40, 1, dtype=torch.float64, requires_grad=True)
    eye = torch.eye(40, dtype=torch.float64)
    kept = sparse_matmul(x, eye, 0.5, True, torch.Generator().manual_seed(0))
    out = sparse_matmul(x, weight, 0.5, True, torch.Generator().manual_seed(0))
    (grad,) = torch.autograd.grad(out.sum(), weight)
    torch.testing.assert_close(grad[:, 0], kept.sum(0), rtol=0, atol=1e-13)


def test_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("hgde.kernels.cpu.threads.MIN_WORK", 1)
    x, before, results = features(torch.float32, 500, 300), torch.get_num_threads(), []
    weight = torch.randn(300, 5, requires_grad=True)
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            out = sparse_matmul(x, weight)
            results.append((out, *torch.autograd.grad(out.square().sum(), weight)))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


def test_values_that_need_a_gradient_take_the_reference_path():
    x = features()
    values = x.values.clone().requires_grad_()
    out = sparse_matmul(x.with_values(values), torch.ones(40, 2, dtype=torch.float64))
    (grad,) = torch.autograd.grad(out.sum(), values)
    assert torch.equal(grad, torch.full_like(grad, 2.0))


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="weight must be"):
        sparse_matmul(features(), torch.zeros(3, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match="dropout is a probability"):
        sparse_matmul(features(), torch.zeros(40, 2, dtype=torch.float64), dropout=1.5)
