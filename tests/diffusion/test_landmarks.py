"""Linear-cost sums outside of the ball: by their definition in flat space, by isometries and parts elsewhere."""

import geoopt
import pytest
import torch

from hgde.diffusion.plain import linear_pair_sum, pair_sum, pair_weights
from hgde.geometry import Euclidean, GeooptManifold, Lorentz, PoincareBall, Product
from hgde.kernels.linear import landmark_halves

COUNT, LANDMARKS = 11, 4


def queries(seed=0):
    return torch.randn(2, COUNT, 2, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tangents(width, seed=1):
    return 0.4 * torch.randn(COUNT, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_pair_weights_are_normalised_sigmoids_averaged_over_heads():
    query, key = queries()
    table = pair_weights(query[:4], key)
    for i in range(4):
        row = torch.zeros(COUNT, dtype=torch.float64)
        for h in range(2):
            each = torch.stack([torch.sigmoid(query[i, h] @ key[j, h]) for j in range(COUNT)])
            row += each / each.sum() / 2
        torch.testing.assert_close(table[i], row)


def test_sums_over_other_sources():
    query, key = queries()
    z, y = tangents(2), tangents(2, seed=5)[:6]
    expected = pair_weights(query, key[:6]) @ y - z
    torch.testing.assert_close(pair_sum(z, query, key[:6], Euclidean(), y), expected)


@pytest.mark.parametrize("landmarks", [LANDMARKS, 5, COUNT - 1])
def test_flat_space_by_its_definition(landmarks):
    """``C(all)`` and the mean over both halves of ``E - C``; ``C`` has a line for the sigmoid."""
    query, key = queries()
    z = tangents(2)
    slopes = []
    for h in range(2):
        reach = max(float(q.norm()) for q in query[:, h]) * max(float(k.norm()) for k in key[:, h])
        slopes.append(min(0.25, 0.5 / reach))

    def cheap(nodes):
        sums = torch.zeros(COUNT, 2, dtype=torch.float64)
        for i in range(COUNT):
            for h in range(2):
                raw = torch.stack([0.5 + slopes[h] * (query[i, h] @ key[j, h]) for j in nodes])
                sums[i] += (raw / raw.sum()) @ z[nodes] / 2
        return sums - z

    expected = cheap(list(range(COUNT)))
    for half in landmark_halves(COUNT, landmarks):
        exact = pair_weights(query, key[half]) @ z[half] - z
        expected = expected + 0.5 * (exact - cheap(half.tolist()))
    torch.testing.assert_close(linear_pair_sum(z, query, key, Euclidean(), landmarks), expected)


def test_the_hyperboloid_is_the_ball():
    query, key = queries()
    ball, hyperboloid = PoincareBall(0.7).double(), Lorentz(0.7).double()
    u = tangents(3)
    x, z = ball.expmap0(u), hyperboloid.expmap0(u)
    one = ball.expmap(x, linear_pair_sum(x, query, key, ball, LANDMARKS))
    two = hyperboloid.expmap(z, linear_pair_sum(z, query, key, hyperboloid, LANDMARKS))
    torch.testing.assert_close(ball.logmap0(one), hyperboloid.logmap0(two))
    exact = ball.expmap(x, pair_sum(x, query, key, ball))
    assert not torch.allclose(one, exact, atol=1e-4)


def test_a_product_is_its_parts():
    query, key = queries()
    parts = [PoincareBall(0.7).double(), Euclidean(), Lorentz(1.3).double()]
    product = Product(parts, [2, 2, 2])
    u = tangents(6)
    z = product.expmap0(u)
    pieces = zip(product.split(z), parts, strict=True)
    expected = [linear_pair_sum(own, query, key, part, LANDMARKS) for own, part in pieces]
    torch.testing.assert_close(linear_pair_sum(z, query, key, product, LANDMARKS), torch.cat(expected, -1))


@pytest.mark.parametrize("space", [Euclidean(), Lorentz(0.7), PoincareBall(0.7), GeooptManifold(geoopt.Sphere())])
def test_few_nodes_are_summed_exactly(space):
    query, key = queries()
    space = space.double()
    z = space.expmap0(tangents(3))
    for landmarks in (COUNT, COUNT + 5):
        torch.testing.assert_close(linear_pair_sum(z, query, key, space, landmarks), pair_sum(z, query, key, space))


def test_elsewhere_landmarks_are_all_there_is():
    query, key = queries()
    sphere = GeooptManifold(geoopt.Sphere())
    z = sphere.expmap0(tangents(3))
    halves = [pair_sum(z, query, key[half], sphere, z[half]) for half in landmark_halves(COUNT, LANDMARKS)]
    torch.testing.assert_close(linear_pair_sum(z, query, key, sphere, LANDMARKS), 0.5 * (halves[0] + halves[1]))
