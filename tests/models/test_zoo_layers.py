"""Layers against loops written from the papers' formulas, against PyG's, and their gradients against differences."""

import math

import pytest
import torch
from scipy.sparse import csr_matrix
from torch.autograd import gradcheck
from zoo_problems import make, shape_of, two_blocks

from hgde import randomness
from hgde.geometry import Lorentz, PoincareBall
from hgde.graph import Graph, SparseFeatures
from hgde.models.zoo._blocks import dropout_seed
from hgde.models.zoo._common import adjacency, edge_softmax, edge_sum
from hgde.models.zoo._hyperbolic import HyperbolicMLR, MobiusLinear
from hgde.models.zoo._lorentz import on_hyperboloid, pairwise_inner
from hgde.models.zoo.blend import positions
from hgde.models.zoo.c_dropedge import critical_share
from hgde.models.zoo.dense_gat import attend_to_all
from hgde.models.zoo.difformer import DIFFormerLayer, attend_itself, attend_sigmoid, attend_simple
from hgde.models.zoo.gat import GATLayer
from hgde.models.zoo.gcn import GCNLayer
from hgde.models.zoo.gcnii import GCNIILayer
from hgde.models.zoo.grand import Diffusivity, rewired
from hgde.models.zoo.h2gcn import two_hops
from hgde.models.zoo.hgcn import HGCNLayer
from hgde.models.zoo.hybonet import HyboNetLayer
from hgde.models.zoo.hyla_sgc import hyla
from hgde.models.zoo.kappa_gcn import midpoints, plane_distances
from hgde.models.zoo.lgcn import LGCNLayer
from hgde.models.zoo.sage import SAGELayer

GRAPH = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)], 6)
N = 6


@pytest.fixture(autouse=True)
def double_precision_layers():
    torch.manual_seed(0)


def points(width=3, scale=0.5):
    return scale * torch.randn(N, width, dtype=torch.float64)


def looped(node):
    return sorted({node, *GRAPH.indices[GRAPH.indptr[node] : GRAPH.indptr[node + 1]].tolist()})


def edges(norm="rows"):
    return adjacency(GRAPH, norm, like=points())


def check_gradients(layer, x, *arguments):
    """The layer's gradient in its input and in every parameter."""
    names, values = zip(*layer.named_parameters(), strict=True)

    def function(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x, *arguments))

    inputs = [x.clone().requires_grad_(), *(v.detach().clone().requires_grad_() for v in values)]
    assert gradcheck(function, inputs)


# The ball, written out.


def exp0(v, c):
    r = math.sqrt(c) * v.norm()
    return v if r == 0 else torch.tanh(r) * v / r


def log0(x, c):
    r = math.sqrt(c) * x.norm()
    return x if r == 0 else torch.atanh(r) * x / r


def plus(x, y, c):
    xy, xx, yy = x @ y, x @ x, y @ y
    return ((1 + 2 * c * xy + c * yy) * x + (1 - c * xx) * y) / (1 + 2 * c * xy + c * c * xx * yy)


def exp_at(x, v, c):
    scale = 2 / (1 - c * (x @ x))
    r = math.sqrt(c) * v.norm()
    return x if r == 0 else plus(x, torch.tanh(scale * r / 2) * v / r, c)


def log_at(x, y, c):
    scale = 2 / (1 - c * (x @ x))
    way = plus(-x, y, c)
    r = math.sqrt(c) * way.norm()
    return 2 / scale * (way if r == 0 else torch.atanh(r) * way / r)


def nearby(actual, expected):
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("local", [False, True])
def test_hgcn_layer_by_hand(attention, local):
    c = 0.7
    layer = HGCNLayer(3, 2, PoincareBall(c), 0.0, "relu", attention, local).double()
    with torch.no_grad():
        layer.linear.bias.copy_(torch.tensor([0.3, -0.2]))
    u = points()
    x = [exp0(row, c) for row in u]  # features on the ball
    h = [plus(exp0(log0(row, c) @ layer.linear.weight, c), exp0(layer.linear.bias, c), c) for row in x]
    expected = []
    for i in range(N):
        near = looped(i)
        weights = torch.full((len(near),), 1 / len(near), dtype=torch.float64)
        if attention:
            a = layer.attention.weight
            scores = torch.stack([log0(h[i], c) @ a[:, 0] + log0(h[j], c) @ a[:, 1] for j in near])
            weights = torch.softmax(torch.nn.functional.leaky_relu(scores, 0.2), 0)
        if local:
            mean = exp_at(h[i], sum(w * log_at(h[i], h[j], c) for w, j in zip(weights, near, strict=True)), c)
        else:
            mean = exp0(sum(w * log0(h[j], c) for w, j in zip(weights, near, strict=True)), c)
        expected.append(torch.relu(log0(mean, c)))
    nearby(layer(u, edges()), torch.stack(expected))


@pytest.mark.parametrize("attention", [False, True])
def test_hybonet_layer_by_hand(attention):
    layer = HyboNetLayer(3, 2, Lorentz(1.0), 0.0, "identity", attention).double()
    if attention:
        with torch.no_grad():
            layer.shift.fill_(0.4)  # far from where the sigmoid is flat

    def linear(part, x):
        y = x @ part.weight + part.bias
        time = torch.sigmoid(y[0]) * part.scale.exp() + 1.1
        return torch.cat([time[None], torch.sqrt(time**2 - 1) * y[1:] / y[1:].norm()])

    def product(x, y):
        return x[1:] @ y[1:] - x[0] * y[0]

    x = Lorentz(1.0).expmap0(points())
    h = [linear(layer.linear, row) for row in x]
    expected = []
    for i in range(N):
        near, total = looped(i), 0
        for j in near:
            weight = 1 / len(near)
            if attention:
                closeness = 2 + 2 * product(linear(layer.query, h[i]), linear(layer.key, h[j]))
                weight = weight * torch.sigmoid(closeness / layer.divisor + layer.shift)
            total = total + weight * h[j]
        expected.append(total / torch.sqrt(-product(total, total)))
    actual = layer(x[:, :1], x[:, 1:], edges())
    nearby(actual, torch.stack(expected))
    nearby(pairwise_inner(actual, actual).diagonal(), -torch.ones(N, dtype=torch.float64))


def test_lgcn_layer_by_hand():
    c = 0.7
    layer = LGCNLayer(3, 2, Lorentz(c), 0.0, "relu").double()

    def up(v):  # exp_o, at distance |v|
        r = math.sqrt(c) * v.norm()
        return torch.cat([torch.cosh(r)[None] / math.sqrt(c), torch.sinh(r) * v / r])

    def product(x, y):
        return x[1:] @ y[1:] - x[0] * y[0]

    u = points()
    h = [up(row @ layer.linear.weight) for row in u]
    seen = [up(row @ layer.linear.weight @ layer.attention.weight) for row in u]
    expected = []
    for i in range(N):
        near = looped(i)
        gaps = torch.stack([-2 / c - 2 * product(seen[i], seen[j]) for j in near])
        total = sum(w * h[j] for w, j in zip(torch.softmax(-gaps, 0), near, strict=True))
        mean = total / (math.sqrt(c) * torch.sqrt(-product(total, total)))
        distance = torch.acosh(math.sqrt(c) * mean[0]) / math.sqrt(c)
        expected.append(torch.relu(distance * mean[1:] / mean[1:].norm()))
    nearby(layer(u, edges()), torch.stack(expected))


def test_grand_equation_by_hand():
    model = make("grand", shape_of(points()), {"width": 3, "heads": 2, "attention_width": 4}, torch.float64)
    with torch.no_grad():
        model.alpha.fill_(0.3)
        model.beta.fill_(-0.2)
    x, start = points(), points()
    layer = model.diffusivity
    q, k = (m(x).view(N, 2, 4) for m in (layer.query, layer.key))
    expected = []
    for i in range(N):
        near = looped(i)
        scores = torch.stack([(q[i] * k[j]).sum(1) / 2 for j in near])
        a = torch.softmax(scores, 0).mean(1)
        mean = sum(w * x[j] for w, j in zip(a, near, strict=True))
        expected.append(torch.sigmoid(model.alpha) * (mean - x[i]) + model.beta * start[i])
    nearby(model.field(x, start, layer(x, edges("none")), edges("none")), torch.stack(expected))


def test_blend_starts_from_features_and_positions_by_hand():
    graph, features, _ = two_blocks(dtype=torch.float64)
    options = {"width": 5, "time": 1.0, "method": "euler", "positions": 4, "position_width": 3, "heads": 1}
    model = make("blend", shape_of(features), options, torch.float64).eval()
    placed = positions(graph, 4, 500)
    x = torch.cat([features @ model.encoder.weight, placed @ model.placement.weight], 1)
    edges = adjacency(graph, "none", like=x)
    q, k = model.diffusivity.query(x), model.diffusivity.key(x)
    after = []
    for i in range(60):
        near = edges.indices[edges.indptr[i] : edges.indptr[i + 1]].tolist()
        a = torch.softmax(torch.stack([q[i] @ k[j] / math.sqrt(16) for j in near]), 0)
        # One step of Euler's method with alpha = 1/2 and beta = 0, as initialised.
        after.append(0.5 * x[i] + 0.5 * sum(w * x[j] for w, j in zip(a, near, strict=True)))
    nearby(model.embed(features, graph), torch.stack(after))


def test_h2gcn_by_hand():
    model = make("h2gcn", shape_of(points()), {"width": 4, "rounds": 2}, torch.float64).eval()
    near = [set(looped(i)) - {i} for i in range(N)]
    far = [{k for j in near[i] for k in near[j]} - near[i] - {i} for i in range(N)]
    x = points()
    rounds = [torch.relu(x @ model.encoder.weight)]
    for _ in range(2):
        last, parts = rounds[-1], []
        for sets in (near, far):
            rows = [
                sum((last[j] / math.sqrt(len(sets[i]) * len(sets[j])) for j in sets[i]), 0 * last[0]) for i in range(N)
            ]
            parts.append(torch.stack(rows))
        rounds.append(torch.cat(parts, 1))
    nearby(model(x, GRAPH), torch.cat(rounds, 1) @ model.decoder.weight)


def test_gcnii_layer_by_hand():
    layer = GCNIILayer(3, 0.3).double()
    x, start = points(), points()
    expected = []
    for i in range(N):
        mean = sum(x[j] / math.sqrt(len(looped(i)) * len(looped(j))) for j in looped(i))
        mixed = 0.8 * mean + 0.2 * start[i]
        expected.append(0.7 * mixed + 0.3 * mixed @ layer.weight)
    matrix = edges("symmetric")
    nearby(layer(x, 0.2 * start, matrix.with_values(0.8 * matrix.values)), torch.stack(expected))


def test_equal_to_pyg():
    from torch_geometric.nn import GATConv, GCN2Conv, GCNConv, SAGEConv

    x = points(3)
    ours, theirs = GCNLayer(3, 4).double(), GCNConv(3, 4).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.weight.T)
    nearby(ours(x, graph=GRAPH), theirs(x, GRAPH.edge_index))

    sage, theirs = SAGELayer(3, 4).double(), SAGEConv(3, 4).double()
    with torch.no_grad():
        theirs.lin_l.weight.copy_(sage.neighbours.weight.T)
        theirs.lin_l.bias.copy_(sage.neighbours.bias)
        theirs.lin_r.weight.copy_(sage.own.weight.T)
    nearby(sage(x, GRAPH), theirs(x, GRAPH.edge_index))

    for mean in (False, True):
        gat, theirs = GATLayer(3, 4, 2, mean).double(), GATConv(3, 4 if mean else 2, 2, concat=not mean).double()
        with torch.no_grad():
            theirs.lin.weight.copy_(gat.linear.weight.T)
            theirs.att_src.copy_(gat.source)
            theirs.att_dst.copy_(gat.target)
        nearby(gat(x, edges("none")), theirs(x, GRAPH.edge_index))

    deep, theirs = GCNIILayer(3, math.log(0.5 / 4 + 1)).double(), GCN2Conv(3, 0.1, 0.5, 4).double()
    with torch.no_grad():
        theirs.weight1.copy_(deep.weight)
    start, matrix = points(), edges("symmetric")
    matrix = matrix.with_values(0.9 * matrix.values)
    nearby(deep(x, 0.1 * start, matrix), theirs(x, start, GRAPH.edge_index))


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("local", [False, True])
def test_gradient_of_hgcn(attention, local):
    check_gradients(HGCNLayer(3, 2, PoincareBall(0.7, True), 0.0, "tanh", attention, local).double(), points(), edges())


def test_gradients_of_layers():
    x, even, bare = points(), edges("symmetric"), edges("none")
    check_gradients(MobiusLinear(3, 2, PoincareBall(0.7, True)).double(), x)
    check_gradients(HyperbolicMLR(3, 2, PoincareBall(0.7, True)).double(), x)
    check_gradients(GCNLayer(3, 2).double(), x, 0.0, GRAPH)
    check_gradients(GATLayer(3, 4, 2).double(), x, bare)
    check_gradients(SAGELayer(3, 2).double(), x, GRAPH)
    check_gradients(GCNIILayer(3, 0.4).double(), x, points(), even)
    check_gradients(Diffusivity(3, 2, 2).double(), x, bare)
    check_gradients(DIFFormerLayer(3, 2, "simple", True, True).double(), x, GRAPH)
    check_gradients(DIFFormerLayer(3, 1, "sigmoid", False, False).double(), x, GRAPH)
    check_gradients(LGCNLayer(3, 2, Lorentz(0.7, True), 0.0, "tanh").double(), x, bare)


@pytest.mark.parametrize("attention", [False, True])
def test_gradient_of_hybonet(attention):
    layer = HyboNetLayer(3, 2, Lorentz(1.0), 0.0, "tanh", attention).double()
    if attention:
        with torch.no_grad():
            layer.shift.fill_(0.4)
    time = torch.rand(N, 1, dtype=torch.float64) + 1
    names, values = zip(*layer.named_parameters(), strict=True)

    def function(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (time, x, edges()))

    assert gradcheck(function, [t.detach().requires_grad_() for t in (points(), *values)])


@pytest.mark.parametrize("kappa", [-0.7, 0.5])
def test_kappa_midpoints_against_geoopt(kappa):
    import geoopt

    space = geoopt.Stereographic(kappa).double()
    x = space.expmap0(points(scale=0.3))
    matrix = edges("symmetric")
    dense = torch.tensor(matrix.to_scipy().toarray())
    expected = [space.weighted_midpoint(x, dense[i], reducedim=[0], lincomb=True) for i in range(N)]
    nearby(space.expmap0(midpoints(space, matrix, x)), torch.stack(expected))
    assert gradcheck(lambda y: midpoints(space, matrix, y), x.clone().requires_grad_())


@pytest.mark.parametrize("kappa", [-0.7, -1e-3, 0.5])
def test_distances_to_planes_against_geoopt(kappa):
    import geoopt

    space = geoopt.Stereographic(kappa).double()
    x, p = space.expmap0(points(scale=0.3)), space.expmap0(points(scale=0.2)[:3])
    normals = points()[1:4]
    expected = space.dist2plane(x[:, None, :], p, normals, signed=True, scaled=True)
    nearby(plane_distances(space, x, p, normals), expected)
    inputs = [t.clone().requires_grad_() for t in (x, p, normals)]
    assert gradcheck(lambda *given: plane_distances(space, *given), inputs)


def test_edge_sums_are_differentiable_in_both():
    matrix = edges("none")
    count = matrix.indices.numel()
    weights = torch.randn(count, 2, dtype=torch.float64, requires_grad=True)
    x = torch.randn(N, 2, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda w, x: edge_sum(matrix, w, x), (weights, x))
    assert gradcheck(lambda w: edge_softmax(matrix, w), (weights,))
    total = torch.zeros(N, 2, dtype=torch.float64).index_add(0, matrix.rows, edge_softmax(matrix, weights))
    nearby(total, torch.ones_like(total))


def test_attention_to_all_in_blocks_is_the_whole_table(monkeypatch):
    q, k, v = (torch.randn(30, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    table = torch.sigmoid(q @ k.T)
    expected = table @ v / table.sum(1, keepdim=True)
    simple = 1 + (q / q.norm()) @ (k / k.norm()).T
    dense = torch.softmax(torch.nn.functional.leaky_relu(q[:, :1] + k[:, 0], 0.2), 1) @ v
    monkeypatch.setattr("hgde.models.zoo._blocks.NUMBERS", 100)
    nearby(attend_sigmoid(q, k, v), expected)
    nearby(attend_simple(q, k, v), simple @ v / simple.sum(1, keepdim=True))
    nearby(attend_to_all(q[:, 0], k[:, 0], v), dense)
    wanted = torch.autograd.grad(expected.square().sum(), (q, k, v), retain_graph=True)
    for got, right in zip(torch.autograd.grad(attend_sigmoid(q, k, v).square().sum(), (q, k, v)), wanted, strict=True):
        nearby(got, right)


def test_attention_to_what_is_asked_follows_from_its_square():
    x, (w_q, w_k), (b_q, b_k) = points(4), torch.randn(2, 4, 3).double(), torch.randn(2, 3).double()
    nearby(attend_itself(x, w_q, b_q, w_k, b_k), attend_simple(x @ w_q + b_q, x @ w_k + b_k, x))
    layer = DIFFormerLayer(4, 2, "simple", False, False).double()
    check_gradients(layer, x, GRAPH)
    heads = zip(layer.query(x).chunk(2, 1), layer.key(x).chunk(2, 1), strict=True)
    nearby(layer(x, GRAPH), torch.stack([attend_simple(q, k, x) for q, k in heads]).mean(0))


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_dense_attention_drops_weights_of_pairs(backend, monkeypatch):
    monkeypatch.setattr("hgde.kernels.backend._default", backend)
    r, s = (4 * torch.randn(40, dtype=torch.float64, requires_grad=True) for _ in range(2))
    h = torch.randn(40, 3, dtype=torch.float64, requires_grad=True)
    with randomness.use(randomness.make_generator(4)):
        actual = attend_to_all(r, s, h, 0.3)
    with randomness.use(randomness.make_generator(4)):
        seed = dropout_seed(h.device)
    mask = randomness.keep_mask(torch.empty(40, 40, dtype=torch.float64), 0.3, randomness.make_generator(seed))
    weights = torch.softmax(torch.nn.functional.leaky_relu(r[:, None] + s, 0.2), dim=1)
    expected = (weights * mask) @ h
    nearby(actual, expected)
    wanted = torch.autograd.grad(expected.square().sum(), (r, s, h))
    for got, right in zip(torch.autograd.grad(actual.square().sum(), (r, s, h)), wanted, strict=True):
        nearby(got, right)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_dense_attention_drops_weights_only_where_asked_to(share):
    graph, features, _ = two_blocks()
    model = make("dense-gat", shape_of(features), {"attention_dropout": share, "dropout": 0.0})
    with randomness.use(randomness.make_generator(0)):
        in_training = model.train()(features, graph)
    assert torch.equal(in_training, model.eval()(features, graph)) == (share == 0)


def test_dropout_of_dense_attention_is_the_same_when_worked_out_again(monkeypatch):
    monkeypatch.setattr("hgde.models.zoo._blocks.NUMBERS", 40)
    r, s = (torch.randn(12, dtype=torch.float64) for _ in range(2))
    h = torch.randn(12, 2, dtype=torch.float64)

    def function(h):
        torch.manual_seed(4)
        return attend_to_all(r, s, h, 0.5)

    # Linear in h: a gradient of other masks than the forward pass drew would not fit the differences.
    assert gradcheck(function, h.requires_grad_())


def test_two_hops_are_strict():
    graph = two_hops(GRAPH)
    pairs = set(map(tuple, graph.edge_index.T.tolist()))
    assert pairs == {(1, 3), (3, 1), (0, 4), (4, 0), (2, 4), (4, 2)}


def test_hyla_features_are_eigenfunctions_of_the_laplacian():
    n, frequency = 3, 0.8
    direction = torch.nn.functional.normalize(torch.randn(1, n, dtype=torch.float64), dim=1)
    arguments = (direction, torch.tensor([frequency], dtype=torch.float64), torch.tensor([0.3], dtype=torch.float64))
    z = 0.3 * torch.randn(n, dtype=torch.float64)

    def f(z):
        return hyla(z[None], *arguments)[0, 0]

    gradient = torch.func.grad(f)(z)
    laplace = torch.func.hessian(f)(z).trace()
    b = 1 - z @ z
    # Laplace-Beltrami on the ball of curvature -1: (b/2)^2 (laplace + 2 (n - 2) <z, grad> / b).
    curved = (b / 2) ** 2 * (laplace + 2 * (n - 2) * (z @ gradient) / b)
    nearby(curved, -(frequency**2 + (n - 1) ** 2 / 4) * f(z))


def test_positions_recover_a_hyperbolic_star_and_are_bounded():
    graph, _, _ = two_blocks()
    placed = positions(graph, 4, 500)
    assert placed.shape == (60, 4)
    assert placed.norm(dim=1).max() < 1
    # Nodes near in the graph are nearer than average.
    gap = (placed[graph.rows] - placed[graph.indices]).norm(dim=1).mean()
    assert gap < 0.8 * torch.cdist(placed, placed).mean()


def test_rewired_graph_joins_what_page_rank_ranks_high():
    a = torch.tensor(GRAPH.with_self_loops().to_scipy().toarray()).double()
    scale = a.sum(1).rsqrt()
    rank = 0.2 * torch.linalg.inv(torch.eye(N, dtype=torch.float64) - 0.8 * scale[:, None] * a * scale)
    best = rank.topk(3, dim=0).indices
    expected = {(int(i), j) for j in range(5) for i in best[:, j] if int(i) != j}
    expected |= {(j, i) for i, j in expected}
    assert set(map(tuple, rewired(GRAPH, 0.2, 3, block=4).edge_index.T.tolist())) == expected


def test_c_dropedge_keeps_the_critical_share_in_training_only():
    graph, features, _ = two_blocks(200, dtype=torch.float64)
    share = critical_share(graph)
    assert share == (200 - 1) / graph.undirected_edges.shape[1]
    model = make("c-dropedge", shape_of(features), dtype=torch.float64)
    kept = [model.train().matrix(graph).indices.numel() - 200 for _ in range(20)]
    assert abs(sum(kept) / 20 / graph.num_edges - share) < 0.02
    assert model.eval().matrix(graph).indices.numel() == graph.num_edges + 200


def test_c_dropedge_trains_with_the_weights_and_loops_it_predicts_with():
    pairs, weights = [(0, 1), (1, 2), (2, 2), (2, 3)], [1.0, 2.0, 3.0, 0.5]
    graph = Graph.from_edges(pairs, N, weights, self_loops=True)
    model = make("c-dropedge", shape_of(points()), {"keep": 1.0}, torch.float64)
    torch.testing.assert_close(model.train().matrix(graph).to_dense(), model.eval().matrix(graph).to_dense())


@pytest.mark.parametrize("sparse", [False, True])
def test_features_on_the_hyperboloid_are_smooth_where_a_row_is_empty(sparse):
    space, x = Lorentz(0.7, learnable=True), points()
    x[1] = 0.0
    c = space.c
    if sparse:
        time, spatial = on_hyperboloid(SparseFeatures.from_scipy(csr_matrix(x.numpy()), torch.float64), c)
        spatial = spatial.to_dense()
    else:
        x.requires_grad_()
        time, spatial = on_hyperboloid(x, c)
    torch.testing.assert_close(torch.cat([time, spatial], dim=1), space.expmap0(0.5 * x))
    (time.sum() + spatial.sum()).backward()
    assert torch.isfinite(space.curvature.log_scale.grad)
    assert sparse or torch.isfinite(x.grad).all()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_features_far_out_stay_on_the_hyperboloid_and_train(dtype, sparse):
    x = points().to(dtype)
    x[1] *= 1000.0
    direction = x[1] / x[1].norm()
    given = SparseFeatures.from_scipy(csr_matrix(x.numpy()), dtype) if sparse else x
    c = torch.tensor(0.7, dtype=dtype)
    time, spatial = on_hyperboloid(given, c)
    spatial = spatial.to_dense() if isinstance(spatial, SparseFeatures) else spatial
    torch.testing.assert_close(spatial[1] / spatial[1].norm(), direction)
    torch.testing.assert_close(time[1].square(), (spatial[1].square().sum() + 1 / c)[None])
    model = make("hybonet", shape_of(x), {"dropout": 0.0}, dtype)
    model(given, GRAPH).square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_label_propagation_solves_the_harmonic_equations():
    model = make("label-propagation", shape_of(points()), {"tolerance": 0.0}, torch.float64).eval()
    model.observe(torch.tensor([0, 1]), torch.tensor([0, 4]))
    p = model(points(), GRAPH).exp()
    a = torch.tensor(GRAPH.to_scipy().toarray()).double()
    for i in (1, 2, 3):
        nearby(p[i], (a[i] @ p) / a[i].sum())
    nearby(p[[0, 4]], torch.eye(2, dtype=torch.float64))
    nearby(p[5], torch.full((2,), 0.5, dtype=torch.float64))


def test_labels_may_be_sets_or_numbers():
    model = make("label-spreading", shape_of(points()), {}, torch.float64).eval()
    model.observe(torch.tensor([[1, 0], [0, -1]]), torch.tensor([0, 4]))
    logits = model(points(), GRAPH)
    assert logits[1, 0] > 0
    assert logits[1, 1] < 0
    model.observe(torch.tensor([[1.0, 5.0], [3.0, math.nan]]), torch.tensor([0, 4]))
    values = model(points(), GRAPH)
    assert 1 < values[3, 0] < 3
    nearby(values[:5, 1], torch.full((5,), 5.0, dtype=torch.float64))


def test_too_many_nodes_are_refused_with_words(monkeypatch):
    graph, features, _ = two_blocks()
    monkeypatch.setattr("hgde.models.zoo.dense_gat.LARGEST", 50)
    monkeypatch.setattr("hgde.models.zoo.glcn.LARGEST", 50)
    with pytest.raises(ValueError, match="at most 50 nodes, got 60"):
        make("dense-gat", shape_of(features))(features, graph)
    with pytest.raises(ValueError, match="at most 50 nodes, got 60"):
        make("glcn", shape_of(features), {"pairs": "all"})(features, graph)
