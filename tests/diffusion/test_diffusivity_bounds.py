"""Settings of diffusivities: the least and the largest value that is taken, and what is refused just beyond."""

import pytest

from hgde.diffusion import make_diffusivity
from hgde.sections import SettingsError

#: Name, setting, values at the edge that are taken, values that are refused.
BOUNDS = [
    ("attention", "heads", [1, 3], [0]),
    ("attention", "negative_slope", [0.0, 1.0], [-0.001, 1.001]),
    ("ricci", "alpha", [0.0, 1.0], [-0.001, 1.001]),
    ("global", "heads", [1, 3], [0]),
    ("global", "beta", [0.0, 1.0], [-0.001, 1.001]),
    ("local-global", "heads", [1, 3], [0]),
    ("local-global", "beta", [0.0, 1.0], [-0.001, 1.001]),
    ("linear-global", "heads", [1, 3], [0]),
    ("linear-global", "beta", [0.0, 1.0], [-0.001, 1.001]),
]


@pytest.mark.parametrize(("name", "option", "taken", "refused"), BOUNDS)
def test_bounds(name, option, taken, refused):
    for value in taken:
        assert getattr(make_diffusivity(name, 2, **{option: value}), option) == value
    for value in refused:
        with pytest.raises(SettingsError, match=option):
            make_diffusivity(name, 2, **{option: value})
