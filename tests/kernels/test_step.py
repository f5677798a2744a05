"""One step of diffusion: the fused kernels against plain torch, plain torch against the literal formula."""

import pytest
import torch

from hgde.geometry import ball
from hgde.geometry.numerics import count_projections
from hgde.graph import Graph
from hgde.kernels import (
    ACTIVATIONS,
    EdgeWeights,
    advance,
    diffuse,
    diffuse_steps,
    edge_values,
    get_backend,
    set_backend,
    tangent_sum,
)
from kernels.graphs import WEIGHTS, awkward, graphs, points, vectors, weights

ETA = (1.0, 0.6, -0.3)
# float32 against float64 on points up to 0.9 from the origin, relative to the largest entry.
VALUE_BUDGET, GRADIENT_BUDGET = 2e-6, 2e-5


def scalar(value: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(value, dtype=dtype, requires_grad=True)


def leaves(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(tensor.detach().clone().requires_grad_() for tensor in tensors)


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("name", graphs())
def test_tangent_sum_is_the_sum_of_log_maps(name, kind, backend):
    graph, c = graphs()[name], 0.7
    z = points(graph.num_nodes, 5)
    tensors, build = weights(kind, graph, 5)
    per_edge = edge_values(graph, build(*tensors), backend="reference")
    logs = ball.logmap(z[graph.rows], z[graph.indices], c)
    expected = torch.zeros_like(z).index_add(
        0, graph.rows, (per_edge if per_edge.dim() == 2 else per_edge[:, None]) * logs
    )
    torch.testing.assert_close(tangent_sum(z, graph, build(*tensors), c, backend), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", WEIGHTS)
def test_fused_steps_equal_reference(kind, activation, residual, monkeypatch):
    """Whether what the way back needs is kept or worked out again."""
    for name, graph in graphs().items():
        width = 6
        tensors, build = weights(kind, graph, width)
        inputs = leaves(points(graph.num_nodes, width), points(graph.num_nodes, width, 1), torch.tensor(0.7).double())
        eta = torch.tensor(ETA, dtype=torch.float64, requires_grad=True)
        inputs = (*inputs, *((eta,) if residual else ()), *leaves(*tensors))

        def run(backend, inputs=inputs, build=build, graph=graph):
            z, z0, c, *rest = inputs
            given = build(*rest[1:]) if residual else build(*rest)
            first, weight = (z0, rest[0]) if residual else (None, None)
            return diffuse_steps(z, graph, given, c, 3, first, weight, activation, backend)

        g = points(graph.num_nodes, width, 2)
        reference = run("reference")
        expected = torch.autograd.grad(reference, inputs, g, allow_unused=True)
        for keep in (0, 10**6):
            monkeypatch.setattr("hgde.kernels.ops.diffusion.KEEP_BYTES", keep)
            fused = run("fused")
            said = f"{name}, {keep} bytes kept: {{}}".format
            torch.testing.assert_close(fused, reference, rtol=0, atol=1e-12, msg=said)
            for ours, theirs in zip(torch.autograd.grad(fused, inputs, g, allow_unused=True), expected, strict=True):
                if theirs is not None:
                    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11, msg=said)


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("directed", [True, False])
def test_gradcheck_of_the_whole_step(kind, directed, monkeypatch):
    monkeypatch.setattr("hgde.kernels.ops.diffusion.KEEP_BYTES", 0)
    graph, width = awkward(directed, 9), 3
    tensors, build = weights(kind, graph, width)
    inputs = leaves(
        points(9, width), points(9, width, 1), torch.tensor(0.7).double(), torch.tensor(ETA).double(), *tensors
    )

    def step(z, z0, c, eta, *rest):
        return diffuse(z, graph, build(*rest), c, z0, eta, "tanh", "fused")

    assert torch.autograd.gradcheck(step, inputs, fast_mode=True)


def test_gradcheck_of_the_tangent_sum_and_of_advancing():
    graph = awkward(True, 9)
    tensors, build = weights("edge", graph, 3)
    z, v, c, *rest = leaves(points(9, 3), points(9, 3, 1), torch.tensor(0.7).double(), *tensors)
    assert torch.autograd.gradcheck(lambda z, c, a: tangent_sum(z, graph, build(a), c, "fused"), (z, c, *rest))
    eta = torch.tensor(ETA, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *a: advance(*a[:3], z0=a[3], eta=a[4], backend="fused"), (z, v, c, z, eta))
    assert torch.autograd.gradcheck(lambda *a: advance(*a, backend="fused"), (z, v, c))


@pytest.mark.parametrize("eta", [None, ETA])
def test_advance_fused_equals_reference(eta):
    z, v, z0 = points(130, 7), vectors(130, 7, 1, 3.0), points(130, 7, 2)
    for activation in ACTIVATIONS:
        both = [advance(z, v, 0.7, z0, eta, activation, backend) for backend in ("fused", "reference")]
        torch.testing.assert_close(*both, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_float32_stays_within_its_budget(kind):
    graph, width = awkward(True, 150, 3), 8
    outcome = {}
    for dtype in (torch.float64, torch.float32):
        tensors, build = weights(kind, graph, width, torch.float32)
        z, c, *rest = leaves(points(150, width, dtype=torch.float32), torch.tensor(1.0), *tensors)
        z, c, rest = z.detach().to(dtype).requires_grad_(), scalar(1.0, dtype), leaves(*(t.to(dtype) for t in rest))
        out = diffuse_steps(z, graph, build(*rest), c, 4, z, ETA, backend="fused")
        g = points(150, width, 5, dtype=torch.float32).to(dtype)
        outcome[dtype] = (out, *torch.autograd.grad(out, (z, c, *rest), g))
    for n, (exact, single) in enumerate(zip(outcome[torch.float64], outcome[torch.float32], strict=True)):
        error = (single.double() - exact).abs().max() / exact.abs().max()
        assert error < (VALUE_BUDGET if n == 0 else GRADIENT_BUDGET)


def test_close_points_keep_relative_precision_in_float32():
    graph = Graph.from_edges([(0, 1)], 2)
    base = torch.full((2, 8), 0.3, dtype=torch.float32)
    base[1] += 1e-5
    expected = ball.logmap(base[:1].double(), base[1:].double(), 1.0)
    for backend in ("fused", "reference"):
        v = tangent_sum(base, graph, EdgeWeights(torch.ones(2)), 1.0, backend)
        torch.testing.assert_close(v[:1].double(), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_steps_out_of_the_ball_are_pulled_back_and_counted(backend, dtype):
    z, v = points(100, 4, dtype=dtype), vectors(100, 4, 1, 200.0, dtype)
    with count_projections() as counter:
        out = advance(z, v, 1.0, backend=backend)
    assert (out.norm(dim=-1) < 1).all()
    assert counter.total == 100


def test_pulled_back_points_have_the_reference_gradient():
    z, v, z0, c = leaves(points(20, 3), vectors(20, 3, 1, 300.0), points(20, 3, 2), torch.tensor(1.0).double())
    for eta in (None, torch.tensor(ETA, dtype=torch.float64)):
        grads = [
            torch.autograd.grad(advance(z, v, c, z0, eta, backend=b).sum(), (z, v, c)) for b in ("fused", "reference")
        ]
        for ours, theirs in zip(*grads, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_result_does_not_depend_on_the_number_of_threads(kind, monkeypatch):
    monkeypatch.setattr("hgde.kernels.cpu.threads.MIN_SHARED", 1)
    monkeypatch.setattr("hgde.kernels.cpu.threads.ALWAYS_SHARED", 0)
    graph, width = awkward(True, 400, 1), 8
    tensors, build = weights(kind, graph, width, torch.float32)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            z, c, *rest = leaves(points(400, width, dtype=torch.float32), torch.tensor(1.0), *tensors)
            out = diffuse_steps(z, graph, build(*rest), c, 2, z, ETA, backend="fused")
            results.append((out, *torch.autograd.grad(out.square().sum(), (z, c, *rest))))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_nothing_of_size_edges_times_width_is_saved():
    graph = Graph.from_edges(torch.randint(0, 500, (2, 20_000)), 500)
    z = points(500, 8).requires_grad_()
    saved: list[int] = []
    tensors, build = weights("edge", graph, 8)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
        diffuse(z, graph, build(*tensors), 1.0, z, ETA, backend="fused")
    assert max(saved) <= z.numel() + 2 * graph.num_edges  # the sums, and two numbers an edge


def test_relabelling_nodes_relabels_the_result():
    graph = awkward(False, 30)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    moved = graph.subgraph(order)
    z = points(30, 4)
    one = diffuse(z, graph, EdgeWeights(torch.full((graph.num_edges,), 0.1).double()), 1.0, z, ETA)
    two = diffuse(z[order], moved, EdgeWeights(torch.full((moved.num_edges,), 0.1).double()), 1.0, z[order], ETA)
    torch.testing.assert_close(two, one[order], rtol=0, atol=1e-14)


def test_consensus_stays_put():
    graph = awkward(True)
    z = points(1, 4).expand(17, 4).contiguous()
    for kind in WEIGHTS:
        tensors, build = weights(kind, graph, 4)
        torch.testing.assert_close(diffuse(z, graph, build(*tensors), 1.0, z, (1, 0.6, 0.1)), z, rtol=0, atol=1e-15)


def test_a_callable_activation_takes_the_reference_path():
    graph = awkward(False)
    tensors, build = weights("edge", graph, 4)
    z = points(17, 4)
    ours = diffuse(z, graph, build(*tensors), 1.0, activation=torch.tanh)
    torch.testing.assert_close(ours, diffuse(z, graph, build(*tensors), 1.0, activation="tanh"), rtol=0, atol=1e-13)


def test_backend_can_be_chosen_and_refuses_what_it_cannot_serve():
    graph = awkward(False)
    tensors, build = weights("edge", graph, 4)
    with pytest.raises(ValueError, match="fused kernels take float32 or float64"):
        tangent_sum(points(17, 4, dtype=torch.float32), graph, build(*tensors), 1.0, "fused")
    with pytest.raises(ValueError, match="backend must be one of"):
        set_backend("quick")  # type: ignore[arg-type]  # the wrong name is the point
    before = get_backend()
    try:
        set_backend("reference")
        out = tangent_sum(points(17, 4).requires_grad_(), graph, build(*tensors), 1.0)
        assert "Diffuse" not in type(out.grad_fn).__name__
    finally:
        set_backend(before)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"z": torch.zeros(3, 4)}, "z must be"),
        ({"weights": EdgeWeights(torch.zeros(3))}, "edge weights must be"),
        ({"eta": (1.0, 2.0)}, "eta must be three numbers"),
        ({"activation": "sinh"}, "unknown activation"),
    ],
)
def test_wrong_arguments_are_refused_with_words(change, words):
    graph = awkward(False)
    given = {"z": torch.zeros(17, 4), "weights": EdgeWeights(torch.zeros(graph.num_edges)), "eta": (1.0, 0.6, 0.1)}
    given |= change
    with pytest.raises(ValueError, match=words):
        diffuse(given.pop("z"), graph, given.pop("weights"), 1.0, **given)
