"""The functions every map is made of, against eighty digits: values and derivatives, across the change of formula."""

import math

import mpmath
import pytest
import torch

from hgde.geometry import numerics

FUNCTIONS = {
    "tanhc": lambda r: mpmath.tanh(r) / r,
    "artanhc": lambda r: mpmath.atanh(r) / r,
    "sinhc": lambda r: mpmath.sinh(r) / r,
    "asinhc": lambda r: mpmath.asinh(r) / r,
    "sech2": lambda r: 1 / mpmath.cosh(r) ** 2,
    "shrink": lambda r: (1 - r / mpmath.sinh(r)) / r**2,
    "stretch": lambda r: (mpmath.sinh(r) / r - 1) / r**2,
}
#: Squared radii on both sides of where the series end: 1e-4, 0.02 and 0.1.
SQUARES = [
    1e-12,
    1e-6,
    5e-5,
    9.9e-5,
    1.01e-4,
    1.9e-4,
    1e-3,
    0.01,
    0.0199,
    0.0201,
    0.035,
    0.05,
    0.0999,
    0.1001,
    0.19,
    0.5,
    0.9,
]
#: The quotients' derivatives cancel a little above the change.
BUDGETS = {"values": 2e-14, "slopes": 2e-11}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives(name):
    squares = SQUARES if name == "artanhc" else [*SQUARES, 2.0, 9.0]
    q = torch.tensor(squares, dtype=torch.float64, requires_grad=True)
    values = getattr(numerics, name)(q)
    (slopes,) = torch.autograd.grad(values.sum(), q)
    with mpmath.workdps(80):
        for square, value, slope in zip(squares, values.tolist(), slopes.tolist(), strict=True):

            def function(s):
                return FUNCTIONS[name](mpmath.sqrt(s))

            exact = mpmath.mpf(square)
            assert value == pytest.approx(float(function(exact)), rel=BUDGETS["values"]), square
            step = exact * mpmath.mpf("1e-12")
            difference = (function(exact + step) - function(exact - step)) / (2 * step)
            assert slope == pytest.approx(float(difference), rel=BUDGETS["slopes"], abs=1e-12), square


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_is_lost_at_zero(name, dtype):
    q = torch.zeros(3, dtype=dtype, requires_grad=True)
    values = getattr(numerics, name)(q)
    (slopes,) = torch.autograd.grad(values.sum(), q)
    at_zero = {"shrink": (1 / 6, -7 / 360), "stretch": (1 / 6, 1 / 120), "tanhc": (1.0, -1 / 3), "sech2": (1.0, -1.0)}
    at_zero |= {"artanhc": (1.0, 1 / 3), "sinhc": (1.0, 1 / 6), "asinhc": (1.0, -1 / 6)}
    value, slope = at_zero[name]
    assert values.tolist() == pytest.approx([value] * 3, rel=1e-6)
    assert slopes.tolist() == pytest.approx([slope] * 3, rel=1e-6)
    assert values.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_artanh_ends_at_the_margin(dtype):
    margin = numerics.limits(dtype).margin
    edge = math.atanh(1 - margin) / (1 - margin)
    values = numerics.artanhc(torch.tensor([(1 - margin) ** 2, 1.0, 3.0], dtype=dtype))
    assert values.tolist() == pytest.approx([edge] * 3, rel=1e-2 if dtype == torch.float32 else 1e-4)
    assert torch.equal(values[1], values[2])


def test_limits_fit_together():
    for limits in numerics.LIMITS.values():
        edge = 1 - limits.margin
        assert limits.smallest_b == pytest.approx(1 - edge**2, rel=1e-3)
        assert limits.reach == pytest.approx(2 * math.atanh(edge), rel=1e-4)
        assert limits.largest_sinh == pytest.approx(math.sinh(limits.reach), rel=1e-9)
    assert numerics.limits(torch.float32).reach == pytest.approx(12.2, abs=0.05)
    assert numerics.limits(torch.float64).reach == pytest.approx(28.3, abs=0.05)
    with pytest.raises(TypeError, match="float32 or float64, got torch"):
        numerics.limits(torch.float16)


def test_norms_have_no_gradient_at_zero():
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    norms = numerics.safe_norm(x)
    assert norms.tolist() == [[5.0], [0.0]]
    (slope,) = torch.autograd.grad(norms.sum(), x)
    assert slope.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]
    assert numerics.safe_sqrt(torch.tensor([-1.0, 4.0])).tolist() == [0.0, 2.0]


def test_counters_nest_and_see_what_happens_inside():
    assert not numerics.counting_projections()
    numerics.record_projections(torch.tensor(5))
    with numerics.count_projections() as outer:
        numerics.record_projections(torch.tensor(2))
        assert numerics.counting_projections()
        with numerics.count_projections() as inner:
            numerics.record_projections(torch.tensor(3))
        assert inner.total == 3
        assert outer.total == 5
        numerics.record_projections(torch.tensor(1))
        assert outer.total == 6, "read before, still counting"
    assert (inner.total, outer.total) == (3, 6)
    assert not numerics.counting_projections()
