"""Every registered model: it learns, sees nodes alike whatever they are called, saves, and works in both precisions."""

import dataclasses

import pytest
import torch
from zoo_problems import epochs_for, make, relabelled, shape_of, train, two_blocks

from hgde.graph import Graph
from hgde.models.base import MODELS, Model
from hgde.sections import Section, SettingsError, build

NAMES = [name for name in MODELS.names() if name != "hgde"]
NO_LINKS = {"label-propagation", "label-spreading"}
WITH_LINKS = [name for name in NAMES if name not in NO_LINKS]


@pytest.mark.parametrize("name", NAMES)
def test_beats_chance_on_nodes(name):
    graph, features, labels = two_blocks(sparse=name != "dense-gat")
    nodes = torch.arange(20)
    model = train(make(name, shape_of(features)), features, graph, labels, nodes, **epochs_for(name))
    with torch.no_grad():
        outputs = model(features, graph)
    assert outputs.shape == (60, 2)
    assert torch.isfinite(outputs).all()
    correct = (outputs.argmax(1) == labels)[20:].float().mean()
    assert correct >= 0.75


@pytest.mark.parametrize("name", NAMES)
def test_sparse_and_dense_features_agree(name):
    graph, sparse, labels = two_blocks(sparse=True, dtype=torch.float64)
    model = make(name, shape_of(sparse), dtype=torch.float64).eval()
    model.observe(labels[:20], torch.arange(20))
    with torch.no_grad():
        torch.testing.assert_close(model(sparse, graph), model(sparse.to_dense(), graph))


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_seen_alike_whatever_they_are_called(name):
    graph, features, labels = two_blocks(dtype=torch.float64)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(3))
    moved, moved_features = relabelled(graph, features, order)
    nodes = torch.arange(20)
    model, other = (make(name, shape_of(features), dtype=torch.float64).eval() for _ in range(2))
    model.observe(labels[nodes], nodes)
    place = torch.argsort(order)
    other.observe(labels[nodes], place[nodes])
    with torch.no_grad():
        here, there = model(features, graph), other(moved_features, moved)
    assert here.std() > 0
    torch.testing.assert_close(here[order], there, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saves_and_loads(name, dtype):
    graph, features, labels = two_blocks(dtype=dtype, sparse=True)
    nodes = torch.arange(20)
    model = train(make(name, shape_of(features), dtype=dtype), features, graph, labels, nodes, epochs=2)
    other = make(name, shape_of(features), dtype=dtype, seed=5).eval()
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        outputs, again = model(features, graph), other(features, graph)
    assert outputs.dtype == dtype
    assert torch.equal(outputs, again)


@pytest.mark.parametrize("name", WITH_LINKS)
def test_embeds_for_links(name):
    graph, features, _ = two_blocks(sparse=True, dtype=torch.float64)
    model = make(name, shape_of(features, outputs=None), dtype=torch.float64)
    points = model.embed(features, graph)
    assert points.shape[0] == 60
    assert not model.manifold.problems(points.detach())
    distance = model.manifold.dist(points[:30], points[30:])
    distance.square().sum().backward()
    assert distance.detach().std() > 0
    # Whatever a model draws for links must matter to them.
    for label, parameter in model.named_parameters():
        assert parameter.grad is not None, label
        assert torch.isfinite(parameter.grad).all(), label


@pytest.mark.parametrize("name", WITH_LINKS)
def test_every_parameter_matters_for_nodes(name):
    graph, features, labels = two_blocks(sparse=True, dtype=torch.float64)
    model = make(name, shape_of(features), dtype=torch.float64)
    outputs = model(features, graph)
    loss = torch.nn.functional.cross_entropy(outputs, labels)
    extra = model.penalty(features, graph, outputs)
    (loss if extra is None else loss + extra).backward()
    for label, parameter in model.named_parameters():
        assert parameter.grad is not None, label
    first = model.feature_parameters()
    assert first
    assert {id(p) for p in first} <= {id(p) for p in model.parameters()}


@pytest.mark.parametrize("name", sorted(NO_LINKS))
def test_what_spreads_labels_has_no_links(name):
    _, features, _ = two_blocks()
    with pytest.raises(SettingsError, match="label"):
        make(name, shape_of(features, outputs=None))


@pytest.mark.parametrize("name", NAMES)
def test_is_described(name):
    kind = MODELS.get(name)
    assert issubclass(kind, Model)
    assert kind.paper
    assert kind.__doc__
    assert kind.pair_decoder in ("fermi-dirac", "dot")
    for preset in kind.presets.values():
        assert set(preset) <= {"model", "training", "preprocessing"}
        build(kind.Settings, preset.get("model", {}))
        assert set(preset.get("training", {})) <= {
            *("epochs", "patience", "lr", "weight_decay", "weight_decay_rest", "clip")
        }
    assert issubclass(kind.Settings, Section)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_repeats_bit_for_bit(name):
    graph, features, labels = two_blocks(sparse=True)
    runs = []
    for noise in (0, 1):
        torch.manual_seed(noise)
        model = train(make(name, shape_of(features)), features, graph, labels, torch.arange(20), epochs=3)
        with torch.no_grad():
            runs.append(model(features, graph))
    assert torch.equal(*runs)


VARIANTS = [
    ("hgcn", {"attention": True, "dropout": 0.1}),
    ("hgcn", {"local": True, "dropout": 0.1}),
    ("hgcn", {"attention": True, "local": True, "layers": 3, "dropout": 0.1}),
    ("hybonet", {"attention": True, "dropout": 0.1}),
    ("kappa-gcn", {"kappa": 0.1, "dropout": 0.1}),
    ("grand", {"kind": "nonlinear", "time": 2.0, "width": 16}),
    ("grand", {"rewire": True, "k": 8, "time": 2.0, "width": 16}),
    ("grand", {"method": "dopri5", "rtol": 1e-2, "time": 2.0, "width": 16}),
    ("graphcon", {"coupling": "gat", "heads": 2, "dropout": 0.1}),
    ("graphcon", {"coupling": "sage", "residual": False, "dropout": 0.1}),
    ("difformer", {"kernel": "sigmoid", "heads": 2, "values": True, "width": 16}),
    ("difformer", {"graph": False, "norm": False, "width": 16}),
    ("hyla-sgc", {"level": "nodes"}),
    ("glcn", {"pairs": "knn"}),
    ("manireg", {"graph": "knn", "k": 4}),
    ("c-dropedge", {"keep": 0.7, "residual": False}),
    ("gcn", {"layers": 1}),
]


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=[f"{n}-{'-'.join(map(str, o))}" for n, o in VARIANTS])
def test_variants_beat_chance(name, options):
    graph, features, labels = two_blocks(sparse=True)
    model = make(name, shape_of(features), options)
    train(model, features, graph, labels, torch.arange(20), **epochs_for(name))
    with torch.no_grad():
        correct = (model(features, graph).argmax(1) == labels)[20:].float().mean()
    assert correct >= 0.75


def test_edge_weights_count_where_a_model_defines_them():
    graph, features, _ = two_blocks(dtype=torch.float64)
    weights = torch.rand(graph.num_edges, dtype=torch.float64) + 0.1
    weighted = dataclasses.replace(graph, weights=weights)
    for name in ("gcn", "sage", "sgc", "appnp", "gcnii", "hgcn", "kappa-gcn", "hybonet", "h2gcn", "graphcon", "gde"):
        model = make(name, shape_of(features), dtype=torch.float64).eval()
        with torch.no_grad():
            assert not torch.allclose(model(features, graph), model(features, weighted)), name
    for name in ("mlp", "hnn", "gat", "lgcn"):
        model = make(name, shape_of(features), dtype=torch.float64).eval()
        with torch.no_grad():
            assert torch.equal(model(features, graph), model(features, weighted)), name


def test_weighted_gcn_is_pygs():
    from torch_geometric.nn import GCNConv

    graph, features, _ = two_blocks(dtype=torch.float64)
    weights = torch.rand(graph.num_edges, dtype=torch.float64) + 0.1
    weighted = dataclasses.replace(graph, weights=weights)
    model = make("gcn", shape_of(features), {"layers": 1}, torch.float64).eval()
    theirs = GCNConv(features.shape[1], 2).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(model.layers[0].weight.T)
        torch.testing.assert_close(model(features, weighted), theirs(features, graph.edge_index, weights))


@pytest.mark.parametrize("name", NAMES)
def test_nodes_without_edges_do_no_harm(name):
    features = torch.rand(6, 4, dtype=torch.float64)
    graph = Graph.from_edges([(0, 1), (1, 2)], 6)
    model = make(name, shape_of(features), dtype=torch.float64)
    model.observe(torch.tensor([0, 1]), torch.tensor([0, 3]))
    outputs = model(features, graph)
    assert torch.isfinite(outputs).all()
    if outputs.requires_grad:
        outputs.square().sum().backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
