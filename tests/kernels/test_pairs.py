"""All pairs: who meets whom, the same bits at any number of threads, accuracy of float32 out to the boundary."""

from itertools import combinations_with_replacement

import pytest
import torch

from hgde.kernels import reference, tangent_sum_global
from hgde.kernels.ops import pairs
from kernels.graphs import points


@pytest.fixture(autouse=True)
def fresh_rounds():
    pairs.rounds.cache_clear()
    yield
    pairs.rounds.cache_clear()


@pytest.mark.parametrize("tiles", [1, 2, 7, 12, 43, 313])
def test_every_run_meets_every_other_once_and_plays_once_a_round(tiles):
    games = pairs.rounds(tiles)
    count = pairs.run_count(tiles)
    assert sorted(game for games in games for game in games) == list(combinations_with_replacement(range(count), 2))
    for now in games[1:]:
        players = [run for game in now for run in game]
        assert len(set(players)) == len(players)


@pytest.mark.parametrize(("tiles", "sources"), [(1, 1), (3, 8), (50, 4), (50, 20)])
def test_rows_meet_sources_once_and_never_two_at_a_time(tiles, sources):
    games = pairs.one_way_rounds(tiles, sources)
    met = [game for now in games for game in now]
    assert len(set(met)) == len(met) == len(games) ** 2
    for now in games:
        players = [run for game in now for run in game]
        assert len(set(players)) == len(players)


def inputs(nodes, heads=1, width=16, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(nodes, heads, 8, generator=generator) for _ in range(2))
    return [t.to(dtype).requires_grad_() for t in (points(nodes, width), q, k)]


def on_threads(count, function):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(count)
        return function()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("far", [False, True])
def test_same_bits_at_any_number_of_threads(heads, far, monkeypatch):
    monkeypatch.setattr(pairs, "TILES", 1)
    z, q, k = inputs(500, heads)
    if far:
        z = z.detach()
        z[::7] *= 0.9999 / z[::7].norm(dim=1, keepdim=True)  # runs of both precisions
        z.requires_grad_()
    y, key = z.detach()[:300].clone().requires_grad_(), k.detach()[:300].clone().requires_grad_()
    c = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def evaluate():
        whole, part = pairs.all_pairs(z, q, k, c)[0], pairs.some_pairs(z, q, y, key, c)[0]
        first = torch.autograd.grad(whole.square().sum(), (z, q, k, c))
        return whole, part, *first, *torch.autograd.grad(part.square().sum(), (z, q, y, key, c))

    results = [on_threads(threads, evaluate) for threads in (1, 2, 3)]
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


def float32_errors(distance, heads, seed):
    """Errors of value and gradients, compiled and plain, against float64 on the same points, and their sizes."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.nn.functional.normalize(torch.randn(200, 16, generator=generator).double(), dim=-1)
    z = (torch.tanh(torch.tensor(distance / 2)) * x).float()
    q, k = (0.5 * torch.randn(200, heads, 16, generator=generator) for _ in range(2))
    toward = torch.randn(200, 16, generator=generator)

    def results(dtype, backend):
        leaves = [t.to(dtype).requires_grad_() for t in (z, q, k)]
        c = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        out = tangent_sum_global(*leaves, c, backend=backend)
        return out.detach(), *torch.autograd.grad((out * toward.to(dtype)).sum(), (*leaves, c))

    exact = results(torch.float64, "reference")
    both = [results(torch.float32, backend) for backend in ("fused", "reference")]
    errors = [[float((a - b).norm()) for a, b in zip(found, exact, strict=True)] for found in both]
    return torch.tensor([*errors, [float(b.norm()) for b in exact]])


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("distance", [0.1, 1.0, 4.0, 6.0, 9.0])
def test_float32_is_no_worse_than_plain_torch(distance, heads):
    # Over several seeds, since the gradient of c is one number, right or wrong by chance.
    sums = torch.stack([float32_errors(distance, heads, seed) for seed in range(8)]).square().sum(0).sqrt()
    fused, plain = sums[:2] / sums[2]
    assert (fused <= (1.5 * plain).clamp_min(4 * torch.finfo(torch.float32).eps)).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_points_that_coincide_and_points_at_the_origin(dtype):
    z, q, k = inputs(70, 2, 5, dtype)
    z = torch.cat([z[:20], z[:20], torch.zeros_like(z[:30])]).detach().requires_grad_()
    out = tangent_sum_global(z, q, k, 1.0, backend="fused")
    right = reference.tangent_sum_global(*(t.double() for t in (z, q, k)), torch.tensor(1.0).double())
    tolerance = 1e-6 if dtype == torch.float32 else 1e-13
    torch.testing.assert_close(out.double(), right, rtol=0, atol=tolerance)
    assert all(bool(torch.isfinite(g).all()) for g in torch.autograd.grad(out.sum(), (z, q, k)))


def test_large_scores_do_not_overflow():
    z, q, k = inputs(70)
    out = tangent_sum_global(z, 200 * q, 200 * k, 1.0, backend="fused")
    right = reference.tangent_sum_global(*(t.double() for t in (z, 200 * q, 200 * k)), torch.tensor(1.0).double())
    torch.testing.assert_close(out.double(), right, rtol=0, atol=1e-5)
    assert all(bool(torch.isfinite(g).all()) for g in torch.autograd.grad(out.sum(), (z, q, k)))


@pytest.mark.parametrize("heads", [1, 3])
def test_sums_over_other_points(heads):
    z, q, _ = inputs(90, heads, 6, torch.float64)
    y, _, k = (t.detach().flip(0)[:70].clone().requires_grad_() for t in inputs(90, heads, 6, torch.float64))
    c = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    ours, theirs = pairs.some_pairs(z, q, y, k, c)[0], reference.sum_over(z, q, y, k, c)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)
    g = points(90, 6, 5)
    for a, b in zip(*(torch.autograd.grad(out, (z, q, y, k, c), g) for out in (ours, theirs)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
