"""Dropout masks worked out side by side are those that torch draws one by one."""

import pytest
import torch

from hgde import randomness
from hgde.kernels import chance


def two_generators():
    return randomness.make_generator(7), randomness.make_generator(7)


@pytest.fixture
def of_any_size(monkeypatch):
    monkeypatch.setattr(chance, "FEWEST", 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.0, 0.047, 0.5, 0.6, 0.999])
def test_masks_and_states_are_torch_s_wherever_the_generator_stands(of_any_size, dtype, p):
    ours, theirs = two_generators()
    for count in (1, 3, 311, 312, 313, 624, 5, 10_001):
        x = torch.empty(count, dtype=dtype)
        assert torch.equal(chance.keep_mask(x, p, ours), randomness.keep_mask(x, p, theirs))
        assert torch.equal(ours.get_state(), theirs.get_state())
        # An odd number of words, so that the two of a chance come from different rounds of the generator.
        assert torch.equal(torch.rand(count, generator=ours), torch.rand(count, generator=theirs))


def test_dropout_and_its_gradient_are_the_plain_ones():
    ours, theirs = two_generators()
    x = torch.randn(60, 50, requires_grad=True)
    with randomness.use(ours):
        one = chance.dropout(x, 0.4)
    with randomness.use(theirs):
        other = randomness.dropout(x, 0.4)
    assert torch.equal(one, other)
    assert torch.equal(*(torch.autograd.grad(y.square().sum(), x)[0] for y in (one, other)))
    assert chance.dropout(x, 0.4, training=False) is x


def test_torch_draws_where_it_draws_otherwise(of_any_size, monkeypatch):
    monkeypatch.setattr(chance, "_draws_alike", lambda: False)
    monkeypatch.setattr(chance, "_mask", None)
    ours, theirs = two_generators()
    x = torch.empty(100)
    assert torch.equal(chance.keep_mask(x, 0.5, ours), randomness.keep_mask(x, 0.5, theirs))
