"""Solvers of several stages in one compiled call: the same as stepping through them, values and gradients."""

import pytest
import torch

from hgde.diffusion import GraphFlow, make_diffusivity
from hgde.diffusion.recording import NotRecordable, record
from hgde.geometry import PoincareBall
from hgde.geometry.numerics import count_projections
from hgde.graph import Graph
from hgde.kernels.plans import START, Recipe
from hgde.models import block as blocks
from hgde.models.block import HPDEBlock
from hgde.solvers import HAM, SOLVERS, InputError
from hgde.solvers.registry import resolve
from kernels.graphs import awkward, points

WIDTH = 6


def recordable(name):
    try:
        record(resolve(name), 6.0, 1.0)
    except NotRecordable:
        return False
    return True


RECORDABLE = [name for name in SOLVERS if recordable(name)]


def solve(name, graph, dtype, *, step=1.0, followed=True, eta=(1.0, 0.6, 0.1), activation="identity", spread=0.5):
    """The last state and the gradients of start, curvature and ``eta``."""
    ball = PoincareBall(0.7, learnable=True)
    flow = GraphFlow(ball, make_diffusivity("isotropic", WIDTH), eta, eta is not None, activation)
    if eta is not None:
        flow.eta.data = flow.eta.data.to(dtype)
    block = HPDEBlock(flow, 3.0, name, step)
    z = points(graph.num_nodes, WIDTH, spread=spread).to(dtype).requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        if not followed:
            patch.setattr(blocks, "follows", lambda *_: False)
        out = block(z, graph)
    assert (type(out.grad_fn).__name__ == "followBackward") is followed
    return out, *torch.autograd.grad(out, (z, *block.parameters()), points(graph.num_nodes, WIDTH, 2).to(dtype))


def test_the_paper_s_solvers_can_be_written_down():
    assert {"heuler", "hrk4", "ham", "rk4", "euler", "midpoint", "heun"} <= set(RECORDABLE)
    with pytest.raises(NotRecordable, match="tolerance"):
        record(resolve("dopri5"), 1.0, 1.0)
    with pytest.raises(NotRecordable):
        record(HAM(tolerance=1e-3), 4.0, 1.0)


def test_evaluations_are_those_of_the_solver():
    assert record(resolve("hrk4"), 5.0, 1.0).evaluations == 20
    assert record(resolve("rk4"), 1.0, 0.4).evaluations == 12
    assert record(resolve("heuler"), 5.0, 1.0).evaluations == 5


STEPS = [(name, step) for name in RECORDABLE for step in (1.0, 0.7)]
STEPS.remove(("heuler", 1.0))  # which has a shorter way of its own


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_followed_equals_stepped_through(name, step):
    for graph in (awkward(True, 150, 3), awkward(False, 17)):
        for ours, theirs in zip(
            *(solve(name, graph, torch.float64, step=step, followed=way) for way in (True, False)), strict=True
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("changes", [{"eta": None}, {"activation": "relu"}, {"activation": "tanh"}])
def test_every_form_of_the_flow_is_followed(changes):
    graph = awkward(True, 40)
    for ours, theirs in zip(
        *(solve("hrk4", graph, torch.float64, followed=way, **changes) for way in (True, False)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("spread", [0.5, 3.0])
@pytest.mark.parametrize("name", ["hrk4", "ham", "rk4"])
def test_in_single_precision_it_is_no_worse_than_stepping(name, spread):
    graph = awkward(True, 150, 3)
    exact = solve(name, graph, torch.float64, spread=spread)
    ours, theirs = (solve(name, graph, torch.float32, followed=way, spread=spread) for way in (True, False))
    for right, one, other in zip(exact, ours, theirs, strict=True):
        errors = [
            float((x.detach().double() - right.detach()).abs().max() / right.detach().abs().max()) for x in (one, other)
        ]
        assert errors[0] < max(2 * errors[1], 2e-6)


@pytest.mark.parametrize("name", ["hrk4", "ham"])
def test_bits_do_not_depend_on_the_number_of_threads(name, monkeypatch):
    graph = awkward(True, 700, 1)
    assert_same_bits(lambda: solve(name, graph, torch.float32), monkeypatch)


def assert_same_bits(solved, monkeypatch):
    """With one, two and three threads."""
    monkeypatch.setattr("hgde.kernels.cpu.threads.MIN_SHARED", 1)
    monkeypatch.setattr("hgde.kernels.cpu.threads.ALWAYS_SHARED", 0)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(solved())
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


ASKED = torch.tensor([690, 3, 420])


def solve_for_some(name, restricted, dtype=torch.float64, time=1.0, diffusivity="isotropic", followed=True):
    """The last states of some nodes of a long path and the gradients of start, curvature and ``eta``."""
    graph = Graph.from_edges([(n, n + k) for k in (1, 5) for n in range(700 - k)])
    ball = PoincareBall(0.7, learnable=True)
    flow = GraphFlow(ball, make_diffusivity(diffusivity, WIDTH), (1.0, 0.6, 0.1), True)
    flow.eta.data = flow.eta.data.to(dtype)
    block, z = HPDEBlock(flow, time, name), points(700, WIDTH).to(dtype).requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        if not followed:
            patch.setattr(blocks, "follows", lambda *_: False)
        if restricted:
            reach = block.reach(graph, ASKED, z)
            assert len(reach.rows) < 700
            out = block(z.index_select(0, reach.rows), graph, reach)
        else:
            out = block(z, graph).index_select(0, ASKED)
    return out, *torch.autograd.grad(out, (z, *block.parameters()), points(3, WIDTH, 2).to(dtype))


@pytest.mark.parametrize("diffusivity", ["isotropic", "isotropic-printed"])
@pytest.mark.parametrize("name", [name for name in RECORDABLE if name != "heuler"])
def test_what_some_nodes_depend_on_equals_all_selected(name, diffusivity):
    time = 6.0 if name == "ham" else 3.0
    given = {"time": time, "diffusivity": diffusivity}
    for ours, theirs in zip(*(solve_for_some(name, way, **given) for way in (True, False)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_some_nodes_have_the_bits_of_all():
    ours, theirs = (solve_for_some("hrk4", way, torch.float32, 3.0) for way in (True, False))
    assert torch.equal(ours[0], theirs[0])
    assert torch.equal(ours[1], theirs[1])


def test_some_nodes_are_selected_in_the_end_where_the_solver_is_stepped_through():
    for ours, theirs in zip(*(solve_for_some("hrk4", True, followed=way) for way in (True, False)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["hrk4", "ham"])
def test_bits_of_some_nodes_do_not_depend_on_the_number_of_threads(name, monkeypatch):
    assert_same_bits(lambda: solve_for_some(name, True, torch.float32, 6.0), monkeypatch)


def test_what_nothing_depends_on_is_left_out():
    recipe = Recipe()
    moved = recipe.flow(START)
    recipe.flow(moved)
    recipe.sum({moved: 1.0, START: 2.0})
    recipe.final = moved
    assert (recipe.evaluations, recipe.plan.evaluations) == (2, 1)


@pytest.mark.parametrize("name", RECORDABLE)
def test_without_a_gradient_it_has_the_same_bits_and_needs_no_more_room_for_more_steps(name):
    graph = awkward(True, 150, 3)
    block = HPDEBlock(GraphFlow(PoincareBall(0.7)), 6.0, name, step=0.7)
    z = points(graph.num_nodes, WIDTH).requires_grad_()
    kept = block(z, graph).detach()
    with torch.no_grad():
        assert torch.equal(block(z, graph), kept)
    room = [record(resolve(name), time, 1.0).plan_to_end.slots for time in (6.0, 12.0, 24.0)]
    assert room[1] == room[2] <= 16, room


def test_projected_points_are_counted():
    graph = awkward(False, 30)
    ball = PoincareBall(1.0)
    z = 0.99999 * torch.nn.functional.normalize(points(30, WIDTH, dtype=torch.float32), dim=1)
    with count_projections() as counter, torch.no_grad():
        HPDEBlock(GraphFlow(ball, eta=None), 2.0, "hrk4")(z, graph)
    followed = counter.total
    with count_projections() as counter, torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "follows", lambda *_: False)
        HPDEBlock(GraphFlow(ball, eta=None), 2.0, "hrk4")(z, graph)
    assert followed == counter.total


def test_recomputing_and_weights_of_the_state_are_stepped_through():
    graph, z = awkward(False, 17), points(17, WIDTH).float().requires_grad_()
    recomputed = HPDEBlock(GraphFlow(PoincareBall()), 2.0, "hrk4", gradient="recompute")(z, graph)
    attended = HPDEBlock(GraphFlow(PoincareBall(), make_diffusivity("attention", WIDTH)), 2.0, "hrk4")(z, graph)
    for out in (recomputed, attended):
        assert type(out.grad_fn).__name__ != "followBackward"
    with pytest.raises(InputError):
        HPDEBlock(GraphFlow(PoincareBall()), 1e9, "hrk4")


def test_a_block_names_the_compiled_parts_that_it_needs():
    ball = PoincareBall()

    def parts(diffusivity, solver, **changes):
        return HPDEBlock(GraphFlow(ball, make_diffusivity(diffusivity, WIDTH, **changes)), 2.0, solver).kernels

    assert parts("isotropic", "heuler") == ("edge",)
    assert parts("isotropic", "hrk4") == ("stages",)
    assert parts("attention", "heuler") == ("attending",)
    assert parts("attention", "heuler", self_loops=True) == ("edge", "attention")
    assert parts("attention", "hrk4") == ("edge", "attention", "solver")
    assert HPDEBlock(GraphFlow(ball), 2.0, "hrk4", gradient="recompute").kernels == ("edge", "solver")
