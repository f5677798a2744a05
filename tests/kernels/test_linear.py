"""The linear-cost form of the sum over all pairs: how near it is, that it knows, and its gradient."""

import logging

import pytest
import torch

from hgde.geometry import ball
from hgde.kernels import linear, tangent_sum_global, tangent_sum_global_linear, watch_linear_errors


def problem(nodes, width, reach, score=1.0, seed=0, dtype=torch.float64):
    """Points within ``reach`` of the origin in random directions, scores of the given size."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.nn.functional.normalize(torch.randn(nodes, width, generator=generator, dtype=torch.float64), dim=1)
    far = reach * torch.rand(nodes, 1, generator=generator, dtype=torch.float64)
    q, k = (
        score**0.5 * width**-0.25 * torch.randn(nodes, 1, width, generator=generator, dtype=torch.float64)
        for _ in range(2)
    )
    return [t.to(dtype) for t in (torch.tanh(far / 2) * x, q, k)]


def distance(v, right, z):
    """Distance between two fields of tangent vectors, relative to the length of the second."""
    size = 2 / (1 - z.square().sum(1, keepdim=True))
    return float((size * (v - right)).norm() / (size * right).norm())


@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("score", [0.1, 1.0])
@pytest.mark.parametrize("reach", [0.5, 3.0])
def test_within_five_percent_for_points_within_three_and_estimated(reach, score, width):
    z, q, k = problem(2000, width, reach, score, dtype=torch.float32)
    with watch_linear_errors() as errors:
        v = tangent_sum_global_linear(z, q, k, 1.0)
    found = distance(v, tangent_sum_global(z, q, k, 1.0), z)
    assert found < 0.05
    # Two halves say little more than the order of magnitude.
    assert 0.4 * found < errors[0] < 2.5 * found


def test_the_error_falls_with_the_root_of_the_landmarks():
    z, q, k = problem(4000, 8, 3.0, dtype=torch.float32)
    right = tangent_sum_global(z, q, k, 1.0)
    few, many = (distance(tangent_sum_global_linear(z, q, k, 1.0, n), right, z) for n in (64, 1024))
    assert many < 0.45 * few


def test_no_more_nodes_than_landmarks_is_exact():
    z, q, k = problem(50, 4, 3.0)
    assert torch.equal(tangent_sum_global_linear(z, q, k, 1.0, 50), tangent_sum_global(z, q, k, 1.0))


def test_consensus_stays_put():
    z, q, k = problem(200, 5, 1.0)
    together = z[:1].expand(200, 5)
    assert tangent_sum_global_linear(together, q, k, 1.0, 40).abs().max() < 1e-12


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_gradcheck(backend):
    z, q, k = (t.requires_grad_() for t in problem(6, 2, 2.0))
    c = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *a: tangent_sum_global_linear(*a, 4, backend), (z, q, k, c), fast_mode=True)


def test_backends_agree():
    z, q, k = problem(300, 6, 3.0)
    torch.testing.assert_close(
        *(tangent_sum_global_linear(z, q, k, 0.7, 100, backend) for backend in ("fused", "reference")),
        rtol=1e-12,
        atol=1e-12,
    )


def test_a_large_error_is_said_once(caplog, monkeypatch):
    monkeypatch.setattr(linear, "_warned", False)
    z, q, k = problem(400, 8, 6.0)
    with caplog.at_level(logging.WARNING, "hgde.kernels"):
        for _ in range(2):
            tangent_sum_global_linear(z, q, k, 1.0, 8)
    assert len(caplog.records) == 1
    assert "with 8 landmarks" in caplog.text


def test_one_landmark_is_refused():
    with pytest.raises(ValueError, match="at least 2 landmarks"):
        tangent_sum_global_linear(*problem(9, 3, 1.0), 1.0, 1)


def test_the_cheap_part_has_weights_of_one_sign():
    z, q, k = problem(50, 3, 3.0, score=900.0)
    c = torch.tensor(1.0, dtype=torch.float64)
    v = linear.centroid_sum(z, q, z, k, c, linear.line_slope(q, k))
    assert (ball.expmap(z, v, c).norm(dim=-1) <= z.norm(dim=-1).max()).all()
