"""Short jobs are shared among threads where that is faster just now, and come out the same whoever shares them."""

import os
import sys

import pytest
import torch

from hgde import Graph
from hgde.compiler.haste import in_haste
from hgde.kernels import EdgeWeights, diffuse
from hgde.kernels.cpu import sizes, threads


@pytest.fixture
def always_shared(monkeypatch):
    """Two threads for every job, however small."""
    monkeypatch.setattr(threads, "ALWAYS_SHARED", 0)
    monkeypatch.setattr(threads, "MIN_SHARED", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def step_and_gradient(width=16):
    generator = torch.Generator().manual_seed(0)
    graph = Graph.from_edges(torch.randint(0, 600, (2, 1500), generator=generator), 600)
    z = (torch.randn(600, width, generator=generator) * 0.1).requires_grad_()
    weights = EdgeWeights(torch.rand(graph.num_edges, generator=generator))
    out = diffuse(z, graph, weights, torch.tensor(1.0), z, (1.0, 0.6, 0.1))
    return out.detach(), torch.autograd.grad(out.square().sum(), z)[0]


def is_same(one, other):
    return all(map(torch.equal, one, other))


def test_the_same_bits_from_torch_s_threads_and_from_workers(monkeypatch, always_shared):
    shared = step_and_gradient()
    monkeypatch.setattr(threads, "_openmp", None)
    assert is_same(step_and_gradient(), shared)
    torch.set_num_threads(1)
    assert is_same(step_and_gradient(), shared)


@pytest.mark.parametrize("width", [3, 16])
def test_a_kernel_made_for_a_width_gives_the_bits_of_the_one_for_all(width):
    own, name = step_and_gradient(width), "trajectories.forward_edges"
    assert sizes.at_width(name, width) != name
    with in_haste():
        assert sizes.at_width(name, width) == name
        assert is_same(step_and_gradient(width), own)
    assert sizes.at_width(name, width) != name


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(always_shared):
    shared = step_and_gradient()
    child = os.fork()
    if child == 0:
        os._exit(0 if is_same(step_and_gradient(), shared) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_both_ways_are_tried_and_the_faster_one_is_kept():
    choice, ways = threads._Choice(), []
    for _ in range(40):
        shared = choice.is_shared()
        ways.append(shared)
        choice.learn(shared, 1.0 if shared else 2.0)
    assert ways[:2] == [False, True]
    assert all(ways[2:])


def test_a_machine_that_becomes_busy_is_noticed_and_forgotten_again():
    choice = threads._Choice()

    def run(count, cost):
        ways = []
        for _ in range(count):
            shared = choice.is_shared()
            ways.append(shared)
            choice.learn(shared, cost[shared])
        return ways

    quiet, busy = (2.0, 1.0), (3.0, 30.0)
    run(40, quiet)
    assert sum(run(100, busy)[10:]) <= 3
    assert sum(run(1000, quiet)[-100:]) >= 95


def test_what_is_known_stays_bounded(monkeypatch):
    monkeypatch.setattr(threads, "_MOST_CHOICES", 4)
    monkeypatch.setattr(threads, "_choices", {})
    for work in range(20):
        threads._choice("some.kernel", work, 2)
    assert len(threads._choices) <= 4


@pytest.mark.parametrize("workers", [False, True])
def test_a_call_is_made_once_and_called_with_other_arguments(monkeypatch, always_shared, workers):
    if workers:
        monkeypatch.setattr(threads, "_openmp", None)
    values, keys = torch.arange(1.0, 1001.0), (5, 9)
    blocks = torch.tensor([0, 400, 1000], dtype=torch.int32)
    monkeypatch.setattr(threads, "MIN_WORK", 1)
    given = threads.Given
    args = (blocks, *keys, 2**31, given("scale"), values, given("out"))
    call = threads.SplitCall("sparse.drop", values.dtype, 2, values.numel(), 0, args)
    once, twice = torch.empty_like(values), torch.empty_like(values)
    call(scale=1.0, out=once)
    call(scale=2.0, out=twice)
    assert 300 < int((once == 0).sum()) < 700
    assert torch.equal(2 * once, twice)
