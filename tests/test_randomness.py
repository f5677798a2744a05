"""Randomness that a run owns: the same numbers as torch's, and torch's own state never touched."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from hgde import randomness


def draws():
    layer = nn.Linear(4, 3)
    matrix = nn.init.xavier_uniform_(torch.empty(3, 3))
    dropped = nn.functional.dropout(torch.ones(200), 0.4)
    return [layer.weight.detach(), layer.bias.detach(), matrix, dropped, torch.randperm(9), torch.rand(3)]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_rerouted_draws_are_those_of_a_seeded_torch_and_leave_it_alone():
    torch.manual_seed(5)
    expected = draws()
    before = torch.get_rng_state()
    with randomness.use(randomness.make_generator(5), reroute=True):
        assert same(draws(), expected)
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_takes_the_run_s_numbers_and_keeps_the_mean():
    x = torch.ones(10_000, requires_grad=True)
    torch.manual_seed(1)
    expected = nn.functional.dropout(x, 0.3)
    before = torch.get_rng_state()
    with randomness.use(randomness.make_generator(1)):
        dropped = randomness.dropout(x, 0.3)
    assert torch.equal(dropped, expected)
    assert torch.equal(torch.get_rng_state(), before)
    assert abs(float(dropped.detach().mean()) - 1) < 0.03
    assert randomness.dropout(x, 0.3, training=False) is x
    assert randomness.dropout(x, 0.0) is x
    with randomness.use(randomness.make_generator(1), reroute=True):
        assert float(nn.functional.dropout(x, 1.0).detach().abs().max()) == 0.0
        changed = torch.ones(100)
        nn.functional.dropout(changed, 0.5, inplace=True)
        assert set(changed.tolist()) == {0.0, 2.0}


def test_threads_do_not_share_numbers():
    def work(seed):
        with randomness.use(randomness.make_generator(seed), reroute=True):
            return [draws() for _ in range(20)]

    alone = [work(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, range(4)))
    for one, other in zip(alone, together, strict=True):
        assert all(same(a, b) for a, b in zip(one, other, strict=True))
