"""The operations as torch knows them: its own checks, second derivatives, compilation and export."""

from functools import cache

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from hgde.diffusion.recording import record
from hgde.kernels import (
    AttentionRule,
    AttentionWeights,
    ChannelWeights,
    EdgeWeights,
    FusedBall,
    advance,
    attend_steps,
    decode,
    diffuse,
    diffuse_steps,
    edge_values,
    encode,
    exp_origin,
    follow,
    log_origin,
    sparse_matmul,
    tangent_sum,
    tangent_sum_global,
    tangent_sum_global_linear,
    translate_tangent,
)
from hgde.kernels.cpu.sizes import EXP, LOG, TRANSLATE
from hgde.kernels.ops import attending, attention, decoding, diffusion, encoding, following, graphs, maps, pairs, sparse
from hgde.kernels.ops.register import registered
from hgde.solvers.registry import resolve
from kernels.graphs import awkward, points, vectors, weights
from kernels.test_sparse import features

ETA = (1.0, 0.6, -0.3)


def leaf(x):
    return x.detach().clone().requires_grad_()


@cache
def samples(dtype=torch.float64, nodes=9, width=3):
    """``{name: (operator, arguments)}`` for every registered operation that has a gradient."""
    graph = awkward(True, nodes)
    pattern = (graph.indptr, graph.indices)
    z, z0, v = (leaf(points(nodes, width, seed, dtype=dtype)) for seed in range(3))
    c, eta = torch.tensor(0.7, requires_grad=True, dtype=dtype), torch.tensor(ETA, requires_grad=True, dtype=dtype)
    values, table = leaf(weights("edge", graph, width, dtype)[0][0]), leaf(torch.rand(4, width, dtype=dtype))
    index, origin = torch.arange(graph.num_edges) % 4, leaf(torch.rand(nodes, dtype=dtype))
    scale, edge = leaf(torch.rand(nodes, width, dtype=dtype)), leaf(0.1 + torch.rand(graph.num_edges, dtype=dtype))
    target, source = (leaf(vectors(nodes, 2, seed, dtype=dtype)) for seed in range(2))
    q, k = (leaf(vectors(nodes * 2, 2, seed, dtype=dtype).view(nodes, 2, 2)) for seed in range(2))
    scoring = leaf(vectors(width, 4, 6, dtype=dtype))
    x, dense = features(dtype), leaf(vectors(40, 3, dtype=dtype))
    point = leaf(0.3 * vectors(1, width, 5, dtype=dtype)[0])
    plan, keys = record(resolve("hrk4"), 2.0, 1.0).plan, torch.tensor([3, 5])
    edges = (z, z0, c, eta, values, None, None, origin, *pattern)
    channels = (z, z0, c, eta, table, scale, index, edge, *pattern)
    return {
        "diffuse, edges": (diffusion.diffuse, (*edges, 2, diffusion.RESIDUAL, 3, diffusion.ALL_AND_EDGES, [])),
        "diffuse, channels": (diffusion.diffuse, (*channels, 2, diffusion.RESIDUAL, 3, diffusion.NOTHING, [])),
        "diffuse, sums": (
            diffusion.diffuse,
            (z, None, c, None, values, *(None,) * 3, *pattern, 1, 0, 0, diffusion.LAST, []),
        ),
        "follow": (
            following.follow,
            (
                z,
                z0,
                c,
                eta,
                values,
                origin,
                *pattern,
                plan.forward,
                plan.backward,
                plan.numbers,
                following.shape_of(plan),
                diffusion.RESIDUAL,
                3,
                [],
                False,
            ),
        ),
        "decode": (
            decoding.decode,
            (z, leaf(vectors(width, 4, 3, dtype=dtype)), leaf(0.2 * vectors(1, 4, 5, dtype=dtype)[0]), c),
        ),
        "encode": (encoding.encode, (x.values, keys, x.indptr, x.indices, None, dense, point, c, leaf(c), 0.4, 3)),
        "encode, some rows": (
            encoding.encode,
            (x.values, keys, x.indptr, x.indices, torch.tensor([4, 1]), dense, point, c, leaf(c), 0.4, 3),
        ),
        "attend": (attending.attend, (z, z0, c, eta, scoring, edge, *pattern, 2, diffusion.RESIDUAL, 3, 0.2, True, [])),
        "advance": (diffusion.advance, (z, v, z0, c, eta, diffusion.RESIDUAL, 1)),
        "attention": (attention.attention, (target, source, edge, *pattern, 0.2)),
        "logmap": (maps.logmap, (c, z, z0)),
        "transport": (maps.transport, (c, z, z0, v)),
        "shrink": (maps.shrink, (c, z, v, z0)),
        "exp_o": (maps.at_origin, (v, c, None, EXP)),
        "log_o": (maps.at_origin, (z, c, None, LOG)),
        "translate": (maps.at_origin, (v, c, point, TRANSLATE)),
        "sparse_product": (sparse.sparse_product, (dense, x.values, x.indptr, x.indices, 40, False)),
        "all_pairs": (pairs.all_pairs, (z, q, k, c)),
        "some_pairs": (pairs.some_pairs, (z, q, leaf(z0[:4]), leaf(k[:4]), c)),
        "by_receiver": (graphs.by_receiver, (graph.edge_index, nodes)),
        "drop": (sparse.drop, (x.values, torch.tensor([3, 5]), 0.4)),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", samples())
def test_torch_finds_nothing_wrong(name, dtype):
    operator, args = samples(dtype)[name]
    checks = ["test_schema", "test_autograd_registration", "test_faketensor"]
    if dtype == torch.float64:
        # Tracing both passes with sizes unknown is most of the cost; what it traces does not depend on the precision,
        # and a tensor made in torch's default precision by mistake shows in this one.
        checks.append("test_aot_dispatch_dynamic")
    torch.library.opcheck(registered(operator), args, test_utils=checks)


@pytest.mark.parametrize("name", samples())
def test_a_plain_call_gives_what_the_registered_operation_gives(name):
    call, args = samples()[name]
    for ours, torchs in zip(*(flat(function(*args)) for function in (call, registered(call))), strict=True):
        assert torch.equal(ours, torchs)
        assert ours.requires_grad == torchs.requires_grad


def test_a_call_that_is_traced_is_seen_by_torch():
    call, args = samples()["drop"]
    traced = make_fx(lambda *tensors: call(*tensors, args[-1]))(*args[:-1])
    assert torch.ops.hgde.drop_raw.default in [node.target for node in traced.graph.nodes]


def flat(result):
    return result if isinstance(result, tuple) else (result,)


@cache
def public():
    """``{name: (function of leaves, leaves)}`` for every public operation."""
    graph = awkward(True, 9)
    z, z0, v = (leaf(points(9, 3, seed)) for seed in range(3))
    c, eta = torch.tensor(0.7, requires_grad=True).double(), torch.tensor(ETA).double().requires_grad_()
    c = leaf(c)
    found = {}
    for kind in ("edge", "attention", "channel"):
        tensors, build = weights(kind, graph, 3)
        tensors = [leaf(t) for t in tensors]

        def step(z, c, *rest, build=build, function=diffuse):
            return function(z, graph, build(*rest), c, backend="fused")

        found[f"diffuse, {kind}"] = (step, (z, c, *tensors))
        found[f"tangent_sum, {kind}"] = (lambda *a, step=step: step(*a, function=tangent_sum), (z, c, *tensors))
    a = leaf(weights("edge", graph, 3)[0][0])
    recipe = record(resolve("hrk4"), 1.0, 1.0)
    stages = lambda z, z0, c, eta, a: follow(z, graph, EdgeWeights(a), c, recipe, z0, eta)  # noqa: E731  # a name for an expression
    found["follow"] = (stages, (z, z0, c, eta, a))
    bias, matrix, sparse_features = leaf(0.3 * vectors(1, 3, 5)[0]), leaf(vectors(40, 3)), features()
    layer = lambda w, b, c, e: encode(sparse_features, w, b, c, e, "tanh", backend="fused")  # noqa: E731  # a name for an expression
    scores_ = lambda z, w, b, c: decode(z, w, b, c, "fused")  # noqa: E731  # a name for an expression
    found["decode"] = (scores_, (z, leaf(vectors(3, 4, 3)), leaf(0.2 * vectors(1, 4, 5)[0]), c))
    found["encode"] = (layer, (matrix, bias, c, leaf(c)))
    two = lambda z, z0, c, eta, a: diffuse_steps(z, graph, EdgeWeights(a), c, 2, z0, eta, backend="fused")  # noqa: E731  # a name for an expression
    found["diffuse_steps"] = (two, (z, z0, c, eta, a))
    found["advance"] = (lambda z, v, c, eta: advance(z, v, c, z0.detach(), eta, backend="fused"), (z, v, c, eta))
    scoring = leaf(vectors(3, 2, 4))
    attending_ = lambda z, c, s: attend_steps(z, graph, AttentionRule(s), c, 2, backend="fused")  # noqa: E731  # a name for an expression
    found["attend_steps"] = (attending_, (z, c, scoring))
    scores = [leaf(vectors(9, 2, seed)) for seed in range(2)]
    found["edge_values"] = (lambda t, s: edge_values(graph, AttentionWeights(t, s), "fused"), tuple(scores))
    q, k = (leaf(vectors(18, 2, seed).view(9, 2, 2)) for seed in range(2))
    found["tangent_sum_global"] = (lambda *a: tangent_sum_global(*a, backend="fused"), (z, q, k, c))
    found["tangent_sum_global_linear"] = (lambda *a: tangent_sum_global_linear(*a, landmarks=4), (z, q, k, c))
    found["exp_origin"] = (lambda u, c: exp_origin(u, c, "fused"), (v, c))
    found["log_origin"] = (lambda u, c: log_origin(u, c, "fused"), (z, c))
    point = leaf(0.3 * vectors(1, 3, 5)[0])
    found["translate_tangent"] = (lambda *a: translate_tangent(*a, "fused"), (v, point, c))
    x = features()
    found["sparse_matmul"] = (lambda w: sparse_matmul(x, w, backend="fused"), (leaf(vectors(40, 3)),))
    ball = FusedBall(0.7)
    found["FusedBall.expmap"] = (ball.expmap, (z, v))
    found["FusedBall.logmap"] = (ball.logmap, (z, z0))
    found["FusedBall.transport"] = (ball.transport, (z, z0, v))
    found["FusedBall.dexp_inv"] = (lambda x, v, w: ball.dexp_inv(x, v, w), (z, v, z0))
    return found


@pytest.mark.parametrize("name", public())
def test_second_derivatives_are_right_or_refused(name):
    function, inputs = public()[name]
    if name == "sparse_matmul":
        assert torch.autograd.gradgradcheck(function, inputs, atol=1e-4)
        return
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("name", public())
def test_second_derivatives_mixed_with_plain_torch_are_right_or_refused(name):
    """A penalty on the gradient with respect to one argument, differentiated in each of the others."""
    function, inputs = public()[name]
    out = (function(*inputs).square() * 0.5).sum() + sum(x.square().sum() for x in inputs)
    gradients = torch.autograd.grad(out, inputs, create_graph=True)
    penalty = sum(g.square().sum() for g in gradients)
    if name == "sparse_matmul":
        assert all(torch.isfinite(g).all() for g in torch.autograd.grad(penalty, inputs))
        return
    for x in inputs:
        with pytest.raises(RuntimeError, match="no second derivative"):
            torch.autograd.grad(penalty, x, retain_graph=True)


def test_the_linear_form_has_the_gradient_of_its_function():
    z, c = leaf(points(5, 2)), leaf(torch.tensor(0.7).double())
    q, k = (leaf(vectors(10, 2, seed).view(5, 2, 2)) for seed in range(2))
    assert torch.autograd.gradcheck(lambda *a: tangent_sum_global_linear(*a, landmarks=3), (z, q, k, c))


class Layer(torch.nn.Module):
    """What a diffusion layer does, with the graph as an argument."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.matrix = torch.nn.Parameter(vectors(5, 8, dtype=torch.float32))
        self.scores = torch.nn.Parameter(vectors(8, 2, 1, dtype=torch.float32))
        self.table = torch.nn.Parameter(torch.rand(4, 8))
        self.log_c = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, x, indptr, indices, values):
        from hgde.graph import Graph

        graph, c = Graph(indptr, indices), self.log_c.exp()
        z = exp_origin(x @ self.matrix, c)
        if self.kind == "edge":
            given = EdgeWeights(values)
        elif self.kind == "attention":
            scores = log_origin(z, c) @ self.scores
            given = AttentionWeights(scores[:, :1], scores[:, 1:])
        else:
            given = ChannelWeights(self.table, (values > 0.02).long(), torch.ones_like(z))
        return log_origin(diffuse_steps(z, graph, given, c, 2, z, (1.0, 0.6, 0.1)), c)


def layer_inputs():
    graph = awkward(False, 20)
    values = weights("edge", graph, 8, torch.float32)[0][0]
    return vectors(20, 5, dtype=torch.float32), graph.indptr, graph.indices, values


@pytest.mark.parametrize("kind", ["edge", "attention", "channel"])
def test_compiled_layers_keep_values_and_gradients(kind):
    layer, inputs = Layer(kind), layer_inputs()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    gradients = []
    for module in (layer, compiled):
        layer.zero_grad()
        out = module(*inputs)
        out.square().sum().backward()
        gradients.append([out.detach(), *(p.grad for p in layer.parameters() if p.grad is not None)])
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["edge", "attention", "channel"])
def test_layers_can_be_exported(kind):
    layer, inputs = Layer(kind), layer_inputs()
    program = torch.export.export(layer, inputs)
    assert "hgde.diffuse" in str(program.graph)
    torch.testing.assert_close(program.module()(*inputs), layer(*inputs), rtol=0, atol=0)
