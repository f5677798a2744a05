"""The polynomials near zero are the Taylor series of their functions, to the last coefficient."""

import mpmath
import pytest
import torch

from hgde.geometry import numerics

#: Each series with its function, and that function of ``r``, even in it.
SERIES = {
    "_TANHC": ("tanhc", lambda r: mpmath.tanh(r) / r),
    "_ARTANHC": ("artanhc", lambda r: mpmath.atanh(r) / r),
    "_ASINHC": ("asinhc", lambda r: mpmath.asinh(r) / r),
    "SHRINK_SERIES": ("shrink", lambda r: (1 - r / mpmath.sinh(r)) / r**2),
    "STRETCH_SERIES": ("stretch", lambda r: (mpmath.sinh(r) / r - 1) / r**2),
}


def taylor(function, count):
    """Coefficients of ``q^k``, ``q = r^2``: means over a circle around the removable singularity."""
    with mpmath.workdps(60):
        radius, points = mpmath.mpf("0.25"), 128
        corners = [radius * mpmath.expjpi(mpmath.mpf(2 * k) / points) for k in range(points)]
        values = [function(corner) for corner in corners]
        return [
            float(mpmath.re(sum(v * c ** (-2 * k) for v, c in zip(values, corners, strict=True)) / points))
            for k in range(count)
        ]


@pytest.mark.parametrize("name", SERIES)
def test_coefficients_are_those_of_taylor(name):
    series, (function, exact) = getattr(numerics, name), SERIES[name]
    assert list(series) == pytest.approx(taylor(exact, len(series)), rel=1e-14, abs=0)
    q = torch.tensor([0.0, 1e-3, 0.0199], dtype=torch.float64)
    assert torch.equal(getattr(numerics, function)(q), numerics.horner(q, series)), "and are what is summed near zero"


def test_horner_is_the_polynomial():
    q = torch.tensor([-2.0, 0.0, 0.5, 3.0], dtype=torch.float64)
    assert numerics.horner(q, (7.0,)).tolist() == [7.0] * 4
    assert numerics.horner(q, (1.0, -2.0, 3.0)).tolist() == [1 - 2 * x + 3 * x * x for x in q.tolist()]
