"""Features to points, and points to scores, in one operation each: the same as their parts, one after the other."""

import pytest
import torch

from hgde import randomness
from hgde.kernels import decode, encode
from hgde.kernels.reference import ACTIVATIONS
from kernels.graphs import vectors
from kernels.test_sparse import features


def inputs(dtype, rows=150, columns=90, width=5):
    weight, bias = vectors(columns, width, 1, 2.0, dtype), 0.4 * vectors(1, width, 2, dtype=dtype)[0]
    c, c_out = torch.tensor(0.7).double(), torch.tensor(1.3).double()
    return features(dtype, rows, columns), tuple(x.clone().requires_grad_() for x in (weight, bias, c, c_out))


def encoded(backend, dtype=torch.float64, dropout=0.0, **changes):
    x, leaves = inputs(dtype)
    with randomness.use(randomness.make_generator(3)):
        out = encode(x, *leaves, dropout=dropout, training=dropout > 0, backend=backend, **changes)
    return out, *torch.autograd.grad(out, leaves, vectors(*out.shape, 4).to(dtype))


@pytest.mark.parametrize("activation", [name for name in ACTIVATIONS if name != "elu"])
def test_equals_its_parts(activation):
    for ours, parts in zip(*(encoded(way, activation=activation) for way in ("fused", "reference")), strict=True):
        torch.testing.assert_close(ours, parts, rtol=1e-10, atol=1e-12)


def test_dropout_is_that_of_the_product():
    """The hash of an entry's place under the same keys: the parts, compiled, drop the same entries."""
    from hgde.kernels import exp_origin, sparse_matmul, translate_tangent

    x, (weight, bias, c, c_out) = inputs(torch.float64)
    source = randomness.make_generator(3)
    product = sparse_matmul(x, weight, 0.4, True, source)
    expected = exp_origin(translate_tangent(product, bias * c.rsqrt(), c), c_out)
    gradients = torch.autograd.grad(expected, (weight, bias, c, c_out), vectors(*expected.shape, 4))
    for ours, parts in zip(encoded("fused", dropout=0.4), (expected, *gradients), strict=True):
        torch.testing.assert_close(ours, parts, rtol=1e-10, atol=1e-12)


def test_in_single_precision_it_is_as_accurate_as_its_parts():
    exact = encoded("reference")
    for right, ours, parts in zip(exact, *(encoded(w, torch.float32) for w in ("fused", "reference")), strict=True):
        errors = [
            float((x.detach().double() - right.detach()).abs().max() / right.detach().abs().max())
            for x in (ours, parts)
        ]
        assert errors[0] < max(1.5 * errors[1], 1e-6)


def test_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("hgde.kernels.cpu.threads.MIN_SHARED", 1)
    monkeypatch.setattr("hgde.kernels.cpu.threads.ALWAYS_SHARED", 0)
    x, leaves, before, results = *inputs(torch.float32, 900, 400, 8), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            with randomness.use(randomness.make_generator(3)):
                out = encode(x, *leaves, dropout=0.5, training=True)
            results.append((out, *torch.autograd.grad(out.square().sum(), leaves)))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("width", [3, 8])
def test_decoding_equals_its_parts(width):
    z, weight, bias = 0.5 * vectors(60, width), vectors(width, 5, 1), 0.4 * vectors(1, 5, 2)[0]
    results = []
    for way in ("fused", "reference"):
        leaves = tuple(x.clone().requires_grad_() for x in (z, weight, bias, torch.tensor(0.7).double()))
        out = decode(*leaves, backend=way)
        results.append((out, *torch.autograd.grad(out, leaves, vectors(60, 5, 3))))
    for ours, parts in zip(*results, strict=True):
        torch.testing.assert_close(ours, parts, rtol=1e-10, atol=1e-12)
