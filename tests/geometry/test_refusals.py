"""Spaces and points that make no sense are refused, with what was expected."""

import math

import geoopt
import pytest
import torch

from hgde.geometry import Euclidean, GeooptManifold, Lorentz, PoincareBall, Product
from hgde.geometry.product import parse_factors
from hgde.sections import SettingsError


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, -math.inf, math.nan])
def test_scales_and_curvatures_are_positive_and_finite(scale):
    with pytest.raises(ValueError, match="positive scale"):
        Euclidean(scale)
    for space in (PoincareBall, Lorentz):
        with pytest.raises(ValueError, match="positive curvature"):
            space(scale)


def test_a_scaled_plane_measures_in_its_scale():
    plane = Euclidean(3.0)
    x, y = torch.zeros(1, 2, dtype=torch.float64), torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    assert plane.dist(x, y).tolist() == [15.0]
    assert plane.norm(x, y).tolist() == [15.0]
    assert plane.inner(x, y, y).tolist() == [225.0]
    assert plane.egrad2rgrad(x, y).tolist() == [[3 / 9, 4 / 9]]
    torch.testing.assert_close(plane.logmap0(plane.expmap0(y)), y)


def test_products_need_a_width_for_each_part():
    for parts, widths in (([], []), ([Euclidean()], []), ([Euclidean()], [1, 2])):
        with pytest.raises(ValueError, match=f"{len(parts)} parts and {len(widths)} widths"):
            Product(parts, widths)
    with pytest.raises(ValueError, match="positive widths"):
        Product([Euclidean(), Euclidean()], [1, 0])
    assert Product([Euclidean()], [1]).ambient(1) == 1


def test_products_refuse_other_widths():
    product = Product([Lorentz(1.0), Euclidean()], [2, 3])
    assert (product.ambient(5), product.dimension(6)) == (6, 5)
    for width in (4, 6):
        with pytest.raises(ValueError, match=f"dimension 5, not {width}"):
            product.ambient(width)
    for count in (5, 7):
        with pytest.raises(ValueError, match=f"6 coordinates, not {count}"):
            product.dimension(count)
        with pytest.raises(ValueError, match=f"6 coordinates, not {count}"):
            product.origin(2, count)
        with pytest.raises(ValueError, match=rf"3 \+ 3 = 6 coordinates, got {count}"):
            product.split(torch.zeros(2, count))
        (problem,) = product.problems(torch.zeros(2, count))
        assert problem == f"expected 6 coordinates, Lorentz [0:3], Euclidean [3:6], got {count}"
    with pytest.raises(ValueError, match=r"2 \+ 3 = 5, got 6"):
        product.expmap0(torch.zeros(2, 6))


def test_problems_of_a_product_name_the_part():
    product = Product([PoincareBall(1.0), PoincareBall(1.0)], [2, 2])
    x = torch.zeros(2, 4, dtype=torch.float64)
    assert product.problems(x) == []
    x[1, 2] = 1.5
    (problem,) = product.problems(x)
    assert problem.startswith("part 1 (PoincareBall): ")


def test_factors_are_names_with_widths():
    assert parse_factors(["ball:8", "euclidean"]) == [("ball", 8), ("euclidean", None)]
    for factors, words in (
        ([], "at least one"),
        (["ball:"], "name:width"),
        (["ball:0"], "name:width"),
        (["ball:x"], "name:width"),
        (["ball:-1"], "name:width"),
        (["cube"], "cube"),
        (["ball", "product"], "product of products"),
    ):
        with pytest.raises(SettingsError, match=words):
            parse_factors(factors)


def test_a_missing_width_is_shared_out_evenly():
    def widths(width, *factors):
        return Product.build(Product.Settings(factors=factors), width).widths

    assert widths(7, "ball", "euclidean", "lorentz") == (3, 2, 2)
    assert widths(8, "ball", "euclidean", "lorentz") == (3, 3, 2)
    assert widths(7, "ball:4", "euclidean", "lorentz") == (4, 2, 1)
    assert widths(6, "ball:4", "euclidean", "lorentz") == (4, 1, 1)
    assert widths(6, "ball:4", "euclidean:2") == (4, 2)
    for width, factors in ((5, ("ball:4", "euclidean", "lorentz")), (7, ("ball:4", "euclidean:2"))):
        with pytest.raises(SettingsError, match=f"do not add up to a width of {width}"):
            widths(width, *factors)


def test_geoopt_manifolds_have_coordinates_for_a_dimension():
    assert GeooptManifold(geoopt.Sphere()).ambient(3) == 4
    assert GeooptManifold(geoopt.Lorentz()).ambient(3) == 4
    assert GeooptManifold(geoopt.PoincareBall()).ambient(3) == 3
