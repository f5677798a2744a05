"""Gradients through every method: for the state, the field's parameters and the curvature; recomputed ones equal."""

import gc

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from hgde.geometry import Euclidean, PoincareBall
from hgde.solvers import SOLVERS, Flow, odeint
from hgde.solvers.registry import resolve
from problems import DrawnField

TIMES = (0.0, 0.3, 1.0)


def solve(field, x0, manifold, method, gradient="backprop"):
    """Enough steps for the multi-step methods to leave their start."""
    return odeint(field, x0, TIMES, manifold=manifold, method=method, step=0.25, gradient=gradient)


@pytest.mark.parametrize("directions", ["one", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", SOLVERS)
def test_gradcheck_for_state_parameters_and_curvature(method, directions):
    """Derivatives along a random direction of each input, none of whose entries is zero; or along every axis."""
    manifold = PoincareBall(0.8, learnable=True)
    field = DrawnField(manifold)
    x0 = manifold.random(1, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64).detach()

    def final(x0, matrix, log_scale):
        parameters = {"matrix": matrix, "manifold.curvature.log_scale": log_scale}

        def run(t, x):
            return torch.func.functional_call(field, parameters, (t, x))

        space = PoincareBall(0.8, learnable=True)
        del space.curvature.log_scale
        space.curvature.log_scale = log_scale
        return solve(run, x0, space, method).states[1:]  # without the start

    inputs = (
        x0.requires_grad_(),
        field.matrix.detach().clone().requires_grad_(),
        torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
    )
    # Outputs without a gradient are a matter of functions written for autograd, and there is none among these.
    options = {"check_undefined_grad": False, "fast_mode": directions == "one"}
    assert torch.autograd.gradcheck(final, inputs, atol=1e-6, rtol=1e-4, **options)


CASES = [(name, adaptive) for name in SOLVERS for adaptive in (False, True) if resolve(name).adaptive or not adaptive]


@pytest.mark.parametrize(("method", "adaptive"), CASES)
def test_recomputed_gradients_are_equal_to_the_bit(method, adaptive):
    results = []
    for gradient in ("backprop", "recompute"):
        manifold = PoincareBall(0.8, learnable=True)
        field = DrawnField(manifold)
        x0 = manifold.random(4, 2, scale=0.5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        x0 = x0.detach().requires_grad_()
        steps = {"rtol": 1e-2} if adaptive else {"step": 0.25}
        solution = odeint(field, x0, TIMES, manifold=manifold, method=method, gradient=gradient, **steps)
        evaluations = solution.statistics.evaluations
        solution.states.square().sum().backward()
        assert solution.statistics.evaluations == evaluations
        results.append((solution.states.detach(), x0.grad, field.matrix.grad, manifold.curvature.log_scale.grad))
    for a, b in zip(*results, strict=True):
        if method == "implicit_adams":
            # Its history reaches into earlier steps, and autograd sums their contributions in another order.
            assert torch.allclose(a, b, rtol=1e-13, atol=1e-15)
        else:
            assert torch.equal(a, b)


@pytest.mark.parametrize("method", ["heuler", "rk4", "ham", "explicit_adams"])
def test_recomputed_gradients_see_dropout_again(method):
    """Randomness inside the field is replayed, not redrawn."""
    results = []
    for gradient in ("backprop", "recompute"):
        torch.manual_seed(0)
        x0 = torch.full((50, 2), 0.2, dtype=torch.float64, requires_grad=True)
        flow = Flow(lambda t, x: 0.9 * torch.nn.functional.dropout(x, 0.5))
        odeint(flow, x0, (0.0, 1.0, 2.0, 3.0, 4.0), manifold=PoincareBall(1.0), method=method, gradient=gradient)
        torch.manual_seed(0)
        solution = odeint(
            flow, x0, (0.0, 1.0, 2.0, 3.0, 4.0), manifold=PoincareBall(1.0), method=method, gradient=gradient
        )
        solution.final.square().sum().backward()
        results.append(x0.grad)
    assert torch.equal(*results)


def _saved_numbers(gradient: str, method: str, steps: int, wide: int = 64) -> int:
    """Numbers autograd keeps alive after the forward solve, outside checkpoints."""
    matrix = torch.randn(wide, wide, dtype=torch.float64, requires_grad=True)
    kept: dict[int, int] = {}

    def pack(tensor):
        kept[tensor.data_ptr()] = tensor.numel()
        return tensor

    x0 = torch.zeros(200, wide, dtype=torch.float64)
    with saved_tensors_hooks(pack, lambda t: t):
        odeint(
            lambda t, x: torch.tanh(torch.tanh(x @ matrix) @ matrix),
            x0, (0.0, 1.0), manifold=Euclidean(), method=method, step=1 / steps, gradient=gradient,
        )  # fmt: skip
    gc.collect()
    return sum(kept.values())


def test_recomputation_keeps_one_state_per_step():
    backprop = _saved_numbers("backprop", "rk4", 16)
    assert backprop > 16 * 4 * 2 * 200 * 64
    recompute = _saved_numbers("recompute", "rk4", 16)
    assert recompute <= 17 * 200 * 64 + 64 * 64


def test_no_graph_is_built_without_gradients():
    with torch.no_grad():
        x = odeint(
            lambda t, x: -x, torch.ones(2, 2), (0.0, 1.0), manifold=Euclidean(), gradient="recompute", step=0.5
        ).final
    assert not x.requires_grad
