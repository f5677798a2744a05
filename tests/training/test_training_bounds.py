"""Settings of training: the least and the largest value that is taken, and what is refused just beyond."""

import pytest

from hgde.sections import SettingsError
from hgde.training.settings import TrainingSettings

#: Name, values at the edge that are taken, values that are refused.
BOUNDS = [
    ("epochs", [1], [0, -1]),
    ("patience", [1], [0]),
    ("smoothing", [0.0, 0.999], [-0.001, 1.0]),
    ("validate_every", [1], [0]),
    ("lr", [1e-9, 5.0], [0.0, -0.1]),
    ("lr_curvature", [None, 1e-9, 5.0], [0.0]),
    ("weight_decay", [0.0, 5.0], [-1e-9]),
    ("weight_decay_rest", [0.0, 5.0], [-1e-9]),
    ("warm_up", [0, 100], [-1]),
    ("clip", [None, 1e-9, 100.0], [0.0]),
    ("averaging", [0.0, 0.999], [-0.001, 1.0]),
    ("keep", ["score", "loss"], ["best"]),
]


@pytest.mark.parametrize(("name", "taken", "refused"), BOUNDS)
def test_bounds(name, taken, refused):
    for value in taken:
        assert getattr(TrainingSettings(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(SettingsError, match=name):
            TrainingSettings(**{name: value})
