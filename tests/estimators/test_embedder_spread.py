"""Two dimensions: points do not gather at the origin, nor all on one side of it."""

import numpy as np
import pytest

from hgde import HGDEEmbedder
from hgde.data.sets.taxonomy_sim import make
from hgde.models.presets import LINK_PRESETS


@pytest.mark.parametrize("preset", LINK_PRESETS)
def test_points_of_two_dimensions_are_spread(preset):
    made = make(num_nodes=150)
    model = HGDEEmbedder(width=2, preset=preset, epochs=30, threads=1).fit(made)
    points = model.transform(made) * np.sqrt(-model.curvature_)
    radius = np.linalg.norm(points, axis=1)
    assert np.median(radius) > 0.05
    directions = points / radius[:, None]
    assert np.linalg.norm(directions.mean(0)) < 0.8  # 1: all the same way
    assert not model._fitted.settings.task.options.structure
