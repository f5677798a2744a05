"""One model on several spaces: what must train the same does, and every space trains."""

import pytest
import torch
from torch import nn

from hgde.data.sets.disease_sim import simulate_disease
from hgde.geometry import SPACES
from hgde.models import HGDE, Shape
from hgde.sections import from_dict

EPIDEMIC = simulate_disease(seed=0, num_nodes=60)
FEATURES = EPIDEMIC.features.double() / 4


def make(space, **changes):
    torch.manual_seed(0)
    values = {"width": 4, "time": 2.0, "dropout": 0.0, "space": space, **changes}
    return HGDE(from_dict(HGDE.Settings, values), Shape(16, 60, 2)).double()


def train(model, epochs=20, lr=0.02):
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _ in range(epochs):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(FEATURES, EPIDEMIC.graph), EPIDEMIC.labels)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


CASES = [
    {},
    {"solver": "hrk4"},
    {"solver": {"name": "rk4", "step": 0.5}, "diffusivity": "symmetric"},
    {"solver": "ham", "diffusivity": "isotropic"},
    pytest.param({"solver": "dopri5", "time": 1.0}, marks=pytest.mark.slow),
    {"diffusivity": {"name": "attention", "heads": 2}, "encoder_layers": 2, "encoder_activation": "tanh"},
    {"diffusivity": {"name": "ricci", "alpha": 0.3}, "activation": "tanh"},
    {"diffusivity": {"name": "global", "learn_beta": True}, "learn_eta": True},
    {"diffusivity": "linear-global"},
    {"residual": False, "diffusivity": "isotropic-printed", "activation": "leaky_relu"},
]


@pytest.mark.parametrize("changes", CASES, ids=str)
def test_ball_and_lorentz_train_the_same(changes):
    ball, lorentz = (train(make({"name": name, "curvature": 0.8}, **changes), 3) for name in ("ball", "lorentz"))
    assert max(abs(a - b) for a, b in zip(ball, lorentz, strict=True)) < 1e-8
    assert ball[-1] < ball[0]


def test_every_space_has_the_same_parameters_and_the_same_start():
    def state(name):
        parameters = make(name, diffusivity="local-global", encoder_layers=2).named_parameters()
        return {name: value for name, value in parameters if "log_scale" not in name}

    first = state("ball")
    for name in SPACES:
        other = state(name)
        assert list(other) == list(first), name
        assert all(torch.equal(one, two) for one, two in zip(first.values(), other.values(), strict=True)), name


def test_flat_space_is_where_the_ball_goes_as_its_curvature_vanishes():
    flat = make("euclidean")
    outputs = flat(FEATURES, EPIDEMIC.graph)
    outputs.square().sum().backward()
    errors = []
    for c in (1e-3, 1e-5):
        near = make({"name": "ball", "curvature": c, "learn_curvature": False})
        scores = near(FEATURES, EPIDEMIC.graph)
        scores.square().sum().backward()
        gradient = near.encoder.linear.weight.grad - flat.encoder.linear.weight.grad
        errors.append((float((scores - outputs).detach().abs().max()), float(gradient.abs().max())))
    assert all(error < 1e-2 for error in errors[0])
    assert all(small < 0.011 * large for small, large in zip(errors[1], errors[0], strict=True))


@pytest.mark.parametrize(
    "space",
    [
        *("ball", "lorentz", "euclidean", "product"),
        {"name": "product", "factors": ["ball:1", "lorentz:2", "euclidean:1"], "curvature": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("diffusivity", ["isotropic", "attention", "ricci", "linear-global"])
def test_every_space_trains(space, diffusivity):
    model = make(space, diffusivity=diffusivity)
    losses = train(model, epochs=6, lr=0.1)
    assert losses[-1] < 0.9 * losses[0]
    assert all(value > 0 for value in model.curvatures().values())


def test_each_factor_of_a_product_has_a_curvature_that_is_trained():
    model = make({"name": "product", "factors": ["ball", "lorentz"]})
    before = model.curvatures()
    assert set(before) == {"encoder 1", "encoder 2", "diffusion 1", "diffusion 2"}
    train(model, epochs=3)
    assert all(model.curvatures()[name] != value for name, value in before.items())
