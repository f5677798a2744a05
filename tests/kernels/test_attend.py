"""Attention worked out at every state, in one operation, against plain torch."""

import pytest
import torch

from hgde.diffusion import make_diffusivity
from hgde.graph import Graph
from hgde.kernels import AttentionRule, attend_steps
from kernels.graphs import awkward, points, vectors

ETA = (1.0, 0.6, -0.3)


def leaves(*tensors):
    return tuple(t.detach().clone().requires_grad_() for t in tensors)


@pytest.mark.parametrize("keep", [0, 10**6])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("residual", [True, False])
def test_fused_equals_plain(residual, heads, keep, monkeypatch):
    monkeypatch.setattr("hgde.kernels.ops.diffusion.KEEP_BYTES", keep)
    graph, width = awkward(True, 30), 6
    edge = 0.1 + torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    inputs = leaves(points(30, width), points(30, width, 1), torch.tensor(0.7).double(), torch.tensor(ETA).double())
    inputs += leaves(vectors(width, 2 * heads, 3), edge)

    def run(backend):
        z, z0, c, eta, scoring, own = inputs
        given = (z0, eta) if residual else (None, None)
        return attend_steps(z, graph, AttentionRule(scoring, 0.2, own), c, 3, *given, "tanh", backend)

    fused, plain = run("fused"), run("reference")
    torch.testing.assert_close(fused, plain, rtol=0, atol=1e-12)
    g = points(30, width, 2)
    pairs = [torch.autograd.grad(out, inputs, g, allow_unused=True) for out in (fused, plain)]
    for ours, theirs in zip(*pairs, strict=True):
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def test_the_rule_gives_the_weights_of_the_diffusivity():
    from hgde.geometry import PoincareBall

    graph, z, ball = awkward(False, 20), points(20, 4), PoincareBall(0.7)
    attention = make_diffusivity("attention", 4, heads=2).double()
    one = attention(z, graph, ball).edges(graph)
    rule = attention.rule(graph, z.dtype)
    other = attention(z, graph, ball).local
    torch.testing.assert_close(rule.weights(ball.logmap0(z)).target, other.target)
    assert one.shape == (graph.num_edges,)
    assert make_diffusivity("attention", 4, self_loops=True).rule(graph, z.dtype) is None


def test_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("hgde.kernels.cpu.threads.ALWAYS_SHARED", 0)
    generator = torch.Generator().manual_seed(0)
    graph = Graph.from_edges(torch.randint(0, 3000, (2, 20_000), generator=generator), 3000)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            z, scoring = leaves(points(3000, 8, dtype=torch.float32), vectors(8, 2, 1, dtype=torch.float32))
            out = attend_steps(z, graph, AttentionRule(scoring), 0.7, 2, z, ETA, backend="fused")
            results.append((out, *torch.autograd.grad(out.square().sum(), (z, scoring))))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
