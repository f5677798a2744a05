"""The paper's schemes, written out from its algorithms."""

import pytest
import torch

from hgde.geometry import Lorentz, PoincareBall
from hgde.solvers import HAM, Flow, odeint
from hgde.solvers.adams import adams_weights
from hgde.solvers.dynamics import Dynamics
from hgde.solvers.paper import hrk4_slope
from problems import DrawnField


def test_heuler_at_unit_step_is_the_flow_to_the_bit():
    manifold = PoincareBall(1.0)
    flow = Flow(lambda t, x: manifold.expmap(x, 0.3 * x.flip(-1)))
    start = manifold.random(3, 2, generator=torch.Generator().manual_seed(2))
    solution = odeint(flow, start, (0.0, 1.0, 2.0, 3.0), manifold=manifold, method="heuler")
    x = start
    for _ in range(3):
        x = flow(torch.zeros(()), x)
    assert torch.equal(solution.final, x)
    assert solution.statistics.evaluations == 3


def test_hrk4_at_unit_step_is_the_printed_scheme():
    """alg:hrk4 word for word; at tau = 1 the factor we removed makes no difference."""
    manifold = PoincareBall(1.0)
    field = DrawnField(manifold)

    def F(t, x):
        return manifold.expmap(x, 0.5 * field(torch.tensor(t), x))

    h = manifold.random(4, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    exp, log, tau = manifold.expmap, manifold.logmap, 1.0
    with torch.no_grad():
        k1 = exp(h, tau * log(h, F(0.0, h)))
        k2 = F(tau / 3, exp(h, tau * log(h, k1) / 3))
        k3 = F(2 * tau / 3, exp(h, tau * (log(h, k2) - log(h, k1) / 3)))
        k4 = F(tau, exp(h, tau * (log(h, k1) - log(h, k2) + log(h, k3))))
        slope = (log(h, k1) + 3 * log(h, k2) + 3 * log(h, k3) + log(h, k4)) / 8
        printed = exp(h, tau * slope)
        ours = odeint(Flow(lambda t, x: F(float(t), x)), h, (0.0, 1.0), manifold=manifold, method="hrk4").final
    assert torch.allclose(ours, printed, atol=1e-13)


def test_ham_with_one_correction_is_the_appendix_algorithm():
    """alg:ham with the queue rooted at h*: warm-up by hrk4, predictor, one corrector."""
    manifold = PoincareBall(1.0)
    field = DrawnField(manifold)
    h0 = manifold.random(4, 2, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    tau = 0.25
    dynamics = Dynamics(field, manifold)
    with torch.no_grad():
        queue, h = [], h0
        for i in range(3):
            slope = hrk4_slope(dynamics, manifold, i * tau, tau, h)
            queue.insert(0, (slope, h))
            if i < 2:
                h = manifold.expmap(h, tau * slope)
        carried = [manifold.transport(point, h, slope) for slope, point in queue]
        predicted = (23 * carried[0] - 16 * carried[1] + 5 * carried[2]) / 12
        star = manifold.expmap(h, tau * predicted)
        ahead = manifold.transport(star, h, field(torch.tensor(3 * tau), star))
        corrected = (9 * ahead + 19 * carried[0] - 5 * carried[1] + carried[2]) / 24
        expected = manifold.expmap(h, tau * corrected)
        method = HAM(s_min=2, s_max=4, iterations=1)
        solution = odeint(field, h0, (0.0, 3 * tau), manifold=manifold, method=method, step=tau)
    assert torch.allclose(solution.final, expected, atol=1e-13)
    assert solution.statistics.corrections == 1


def test_ham_corrector_iterates_to_its_tolerance():
    manifold = PoincareBall(1.0)
    field = DrawnField(manifold)
    start = manifold.random(4, 2, scale=0.4, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    with torch.no_grad():
        loose, tight, tighter = (
            odeint(field, start, (0.0, 2.0), manifold=manifold, method="ham", step=0.25, tolerance=tolerance)
            for tolerance in (1e-3, 1e-10, 1e-12)
        )
    assert loose.statistics.corrections < tight.statistics.corrections
    assert torch.allclose(tight.final, tighter.final, atol=1e-9)


def ham_by_hand(field, manifold, h, tau, steps, s_min, s_max, corrections):
    """alg:ham with a plain list for the queue: newest first, never longer than ``s_max``."""
    dynamics = Dynamics(field, manifold)
    queue = []
    for n in range(steps):
        t = n * tau
        if n <= s_min:
            queue.insert(0, (t, h, hrk4_slope(dynamics, manifold, t, tau, h)))
            while len(queue) > s_max:
                queue.pop()
        if n < s_min:
            h = manifold.expmap(h, tau * queue[0][2])
            continue
        carried = [manifold.transport(point, h, slope) for _, point, slope in queue]
        nodes = tuple(float(round((time - t) / tau)) for time, _, _ in queue)
        way = sum(tau * w * carried[j] for j, w in adams_weights(nodes))
        for _ in range(corrections):
            star = manifold.expmap(h, way)
            slope = field(torch.tensor(t + tau, dtype=h.dtype), star)
            slopes = [manifold.transport(star, h, slope), *carried]
            way = sum(tau * w * slopes[j] for j, w in adams_weights((1.0, *nodes)))
        h = manifold.expmap(h, way)
        queue.insert(0, (t + tau, star, slope))
        while len(queue) > s_max:
            queue.pop()
    return h


@pytest.mark.parametrize(("s_min", "s_max", "corrections"), [(1, 1, 2), (1, 2, 1), (2, 2, 1), (1, 3, 2), (2, 4, 1)])
def test_ham_is_the_algorithm_whatever_the_queue(s_min, s_max, corrections):
    """Long enough for the queue to be full: one slope more would be another method."""
    manifold = PoincareBall(1.0)
    field = DrawnField(manifold)
    start = manifold.random(4, 2, scale=0.5, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    with torch.no_grad():
        expected = ham_by_hand(field, manifold, start, 0.25, 8, s_min, s_max, corrections)
        method = HAM(s_min=s_min, s_max=s_max, iterations=corrections)
        solution = odeint(field, start, (0.0, 2.0), manifold=manifold, method=method, step=0.25)
    assert torch.allclose(solution.final, expected, atol=1e-13)
    assert solution.statistics.corrections == corrections * (8 - s_min)


@pytest.mark.parametrize("method", ["heuler", "hrk4", "ham"])
def test_ball_and_hyperboloid_take_the_same_way(method):
    ball, lorentz = PoincareBall(0.7), Lorentz(0.7)
    g = torch.Generator().manual_seed(0)
    u = 0.4 * torch.randn(5, 3, generator=g, dtype=torch.float64)
    centre = 0.4 * torch.randn(3, generator=g, dtype=torch.float64)
    ends = []
    for manifold in (ball, lorentz):
        p = manifold.expmap0(centre)

        def flow(t, x, manifold=manifold, p=p):
            return manifold.expmap(x, (0.5 + 0.1 * t) * manifold.logmap(x, p.expand_as(x)))

        end = odeint(Flow(flow), manifold.expmap0(u), (0.0, 4.0), manifold=manifold, method=method, step=1.0).final
        ends.append(manifold.logmap0(end))
    assert torch.allclose(*ends, atol=1e-12)
