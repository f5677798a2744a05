"""Which parameter gets which learning rate and weight decay, and how the first epochs warm up."""

from dataclasses import fields

import geoopt
import pytest
import torch
from torch import nn

from hgde.geometry import Curvature
from hgde.graph import Graph
from hgde.models import MODELS
from hgde.models.base import Model, Shape
from hgde.sections import choose
from hgde.tasks.base import Learner, SelectNodes
from hgde.training.adam import Adam
from hgde.training.optimisers import Optimisers
from hgde.training.settings import TrainingSettings

SETTINGS = TrainingSettings(lr=0.04, lr_curvature=0.003, weight_decay=0.5, weight_decay_rest=0.02, warm_up=4)
GRAPH = Graph.from_edges(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]), 5)


def learner(name="hgde", **options):
    torch.manual_seed(0)
    chosen = choose(MODELS, name, options)
    return Learner(chosen.entry(chosen.options, Shape(in_features=3, num_nodes=5, outputs=2)), SelectNodes(), 2)


def rates(optimisers):
    """Learning rate and weight decay of every parameter, by identity."""
    groups = [group for part in optimisers.parts.values() for group in part.param_groups]
    return {id(p): (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]}


def hyperbolic():
    """A model with parameters of every kind."""
    space = {"name": "ball", "learn_curvature": True}
    return learner(width=4, time=1.0, learn_eta=True, diffusivity={"name": "attention"}, space=space)


def test_every_parameter_has_the_rate_and_decay_of_its_kind():
    made = hyperbolic()
    optimisers = Optimisers(made, SETTINGS)
    given = rates(optimisers)
    features = {id(p) for p in made.model.feature_parameters()}
    curvatures = {id(p) for m in made.modules() if isinstance(m, Curvature) for p in m.parameters()}
    seen = set()
    for p in made.parameters():
        if id(p) in features:
            kind, wanted = "feature matrix", (0.04, 0.5)
        elif id(p) in curvatures:
            kind, wanted = "curvature", (0.003, 0.0)
        elif isinstance(p, geoopt.ManifoldParameter):
            kind, wanted = "point", (0.04, 0.0)
        else:
            kind, wanted = ("matrix", (0.04, 0.02)) if p.dim() > 1 else ("vector", (0.04, 0.0))
        assert given[id(p)] == wanted, kind
        seen.add(kind)
    assert seen == {"feature matrix", "curvature", "point", "matrix", "vector"}
    assert len(given) == len(list(made.parameters())), "each parameter once"
    assert optimisers.idle == {}


def test_curvatures_learn_at_the_common_rate_unless_told_otherwise():
    made = hyperbolic()
    given = rates(Optimisers(made, TrainingSettings(lr=0.04)))
    assert {rate for rate, _ in given.values()} == {0.04}
    by_default = rates(Optimisers(made, TrainingSettings()))
    matrices = [p for p in made.parameters() if p.dim() > 1 and id(p) not in map(id, made.model.feature_parameters())]
    assert matrices
    assert all(by_default[id(p)][1] == 0.0 for p in matrices), "by default only the feature matrix decays"


def test_groups_are_joined_where_nothing_differs():
    made = hyperbolic()
    adam = Optimisers(made, TrainingSettings(lr=0.01, weight_decay=0.0)).parts["adam"]
    assert [{p.dtype for p in group["params"]} for group in adam.param_groups] == [{torch.float32}, {torch.float64}]
    features, *_ = made.model.feature_parameters()
    assert adam.param_groups[0]["params"][0] is features
    assert len(Optimisers(made, SETTINGS).parts["adam"].param_groups) == 4


def stepped(kind, dtype, second, options):
    """Weights and state after some steps; one parameter has no gradient at first, another never."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((5, 3), (3,), (), (2,))
    weights = [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in shapes]
    groups = [{"params": weights[:2], "weight_decay": 0.1}, {"params": weights[2:], **second}]
    optimiser = kind(groups, lr=0.02, **options)
    for count in range(6):
        for weight in weights[:2] if count < 3 else weights[:3]:
            weight.grad = torch.randn(weight.shape, generator=generator, dtype=dtype)
        optimiser.step()
    state = optimiser.state_dict()["state"]
    return weights, [value for place in sorted(state) for value in state[place].values()]


OPTIONS = [{"fused": True}, {"fused": False}, {"fused": True, "amsgrad": True}, {"fused": True, "maximize": True}]


@pytest.mark.parametrize("second", [{}, {"maximize": True}], ids=["alike", "two kinds"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_adam_is_torchs_to_the_bit(dtype, options, second):
    ours, torchs = (stepped(kind, dtype, second, options) for kind in (Adam, torch.optim.Adam))
    for mine, its in zip(ours, torchs, strict=True):
        assert len(mine) == len(its)
        assert all(torch.equal(a, b) for a, b in zip(mine, its, strict=True))


def test_adam_takes_a_closure():
    weight = nn.Parameter(torch.ones(2))
    optimiser = Adam([weight], fused=True)
    for _ in range(2):
        assert optimiser.step(lambda: (weight * 3).sum().backward() or 7) == 7
    assert bool((weight < 1).all())


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0, float("nan")])
def test_gradients_are_shortened_as_torch_does_it(scale):
    ours, torchs = hyperbolic(), hyperbolic()
    for made in (ours, torchs):
        generator = torch.Generator().manual_seed(1)
        for p in [*made.parameters()][1:]:
            p.grad = scale * torch.randn(p.shape, generator=generator).to(p.dtype)
    Optimisers(ours, SETTINGS).clip(1.0)
    for is_point in (True, False):
        some = [p for p in torchs.parameters() if isinstance(p, geoopt.ManifoldParameter) is is_point]
        torch.nn.utils.clip_grad_norm_(some, 1.0)
    for a, b in zip(ours.parameters(), torchs.parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            torch.testing.assert_close(a.grad, b.grad, equal_nan=True)


def test_where_space_is_nearly_flat_matrices_learn_as_in_flat_space():
    found = []
    for space in ({"name": "ball", "curvature": 1e-5, "learn_curvature": False}, {"name": "euclidean", "scale": 2.0}):
        made = learner(width=4, time=2.0, dropout=0.0, space=space).double()
        made.model(torch.eye(5, 3).double(), GRAPH).square().sum().mul(30.0).backward()
        Optimisers(made, SETTINGS).clip(1.0)
        found.append([p.grad for p in made.parameters() if p.dim() > 1])
    for curved, flat in zip(*found, strict=True):
        # In flat space the bias is no point, and is shortened together with the matrices.
        assert 0.1 < float(flat.norm()) <= float(curved.norm())
        torch.testing.assert_close(curved / curved.norm(), flat / flat.norm(), rtol=0.0, atol=1e-3)


def test_rates_rise_to_their_values_over_the_first_epochs():
    made = hyperbolic()
    optimisers = Optimisers(made, SETTINGS)
    wanted = rates(optimisers)
    for epoch, share in enumerate([0.2, 0.4, 0.6, 0.8, 1.0, 1.0]):
        optimisers.step(epoch)
        for name, (rate, _) in rates(optimisers).items():
            assert rate == pytest.approx(share * wanted[name][0])
    assert rates(optimisers) == wanted, "exactly, in the end"
    resumed = Optimisers(made, SETTINGS)
    resumed.step(7)
    assert rates(resumed) == wanted
    at_once = Optimisers(made, TrainingSettings(lr=0.04, warm_up=0))
    at_once.step(0)
    assert {rate for rate, _ in rates(at_once).values()} == {0.04}


def test_a_step_moves_by_the_gradient_and_zero_grad_forgets_it():
    made = hyperbolic()
    optimisers = Optimisers(made, TrainingSettings(weight_decay=0.0))
    before = [p.detach().clone() for p in made.parameters()]
    made(torch.randn(5, 3), GRAPH, torch.arange(5)).square().sum().backward()
    assert all(p.grad is not None for p in made.parameters())
    optimisers.step(20)
    moved = [not torch.equal(p, old) for p, old in zip(made.parameters(), before, strict=True)]
    assert all(moved)
    optimisers.zero_grad()
    assert all(p.grad is None for p in made.parameters())


def test_settings_that_cannot_act_are_named():
    flat = Optimisers(learner("gcn"), TrainingSettings()).idle
    assert set(flat) == {"lr_curvature"}
    assert "no curvature" in flat["lr_curvature"]

    class Untrained(Model):
        def feature_parameters(self):
            return []

    nothing = Optimisers(Learner(Untrained(), SelectNodes(), 2), TrainingSettings())
    assert nothing.parts == {}
    assert set(nothing.idle) == {spec.name for spec in fields(TrainingSettings)} - {"calibrate"}

    class Vector(Untrained):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

    alone = Optimisers(Learner(Vector(), SelectNodes(), 2), TrainingSettings())
    assert set(alone.idle) == {"weight_decay", "weight_decay_rest", "lr_curvature"}
    assert list(alone.parts) == ["adam"]
