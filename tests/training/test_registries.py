"""Every diffusivity with every solver trains on the demo data: the loss falls and stays a number."""

import math

import pytest

from hgde.data.disease import simulate_disease
from hgde.diffusion import DIFFUSIVITIES
from hgde.settings import Settings
from hgde.solvers import SOLVERS
from hgde.training.prepare import make_task
from hgde.training.run import train

SETTINGS = Settings(
    width=4,
    time=2.0,
    epochs=4,
    rtol=0.01,
    atol=0.01,
    lr=0.02,
    dropout=0.0,
    heads=2,
    learn_beta=True,
    eta=(1.0, 0.4, 0.1),
    threads=1,
)


@pytest.fixture(scope="module")
def epidemic():
    dataset = simulate_disease(seed=0, num_nodes=120)
    return {"dataset": dataset, "task": make_task(dataset, SETTINGS)}


@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize("diffusivity", DIFFUSIVITIES)
def test_it_trains(diffusivity, method, epidemic):
    settings = SETTINGS.replace(diffusivity=diffusivity, method=method)
    outcome = train(settings, **epidemic).outcomes[0]
    losses = [epoch["loss"] for epoch in outcome.history]
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0]
    assert all(0 < c < 10 for c in outcome.curvatures.values())
