"""Settings of methods: the least and the largest value that is taken, and what is refused just beyond."""

import pytest

from hgde.sections import SettingsError, settings_of
from hgde.solvers import SOLVERS

#: Method, setting, values at the edge that are taken, values that are refused.
BOUNDS = [
    ("rk4", "step", [1e-9, 9.0], [0.0, -1.0]),
    ("dopri5", "rtol", [1e-9, 0.5], [0.0]),
    ("dopri5", "atol", [0.0, 0.5], [-1e-9]),
    ("implicit_adams", "max_order", [4, 12], [3, 13]),
    ("implicit_adams", "max_iterations", [1], [0]),
    ("implicit_adams", "tolerance", [None, 1e-9], [0.0]),
    ("ham", "s_min", [1], [0]),
    ("ham", "s_max", [1, 5], [0]),
    ("ham", "iterations", [1], [0]),
    ("ham", "tolerance", [None, 1e-9], [0.0]),
    ("ham", "max_iterations", [1], [0]),
]


@pytest.mark.parametrize(("method", "name", "taken", "refused"), BOUNDS)
def test_bounds(method, name, taken, refused):
    section = settings_of(SOLVERS.get(method))
    others = {"s_max": 5} if name == "s_min" else {}
    for value in taken:
        assert getattr(section(**others, **{name: value}), name) == value
    for value in refused:
        with pytest.raises(SettingsError, match=name):
            section(**others, **{name: value})


def test_settings_that_cannot_act():
    """HAM corrects a fixed number of times or until a tolerance; what belongs to the other way is idle."""
    section = settings_of(SOLVERS.get("ham"))
    fixed, settled = section(), section(tolerance=1e-6)
    assert set(vars(fixed)) - set(fixed.to_dict()) == {"max_iterations"}
    assert set(vars(settled)) - set(settled.to_dict()) == {"iterations"}
