"""Settings of tasks and decoders: the least and the largest value that is taken, and what is refused just beyond."""

import pytest

from hgde.sections import SettingsError, settings_of
from hgde.tasks.decoders import DECODERS
from hgde.tasks.links import LinkSettings
from hgde.tasks.nodes import NodeSettings

#: Section, other settings, name, values at the edge that are taken, values that are refused.
BOUNDS = [
    (NodeSettings, {}, "labels_per_class", [None, 1], [0]),
    (NodeSettings, {}, "consistency", [0.0, 9.0], [-1e-9]),
    (NodeSettings, {"consistency": 1.0}, "consistency_temperature", [1e-9, 3.0], [0.0]),
    (LinkSettings, {}, "fermi_t", [1e-9, 9.0], [0.0]),
    (LinkSettings, {}, "hidden_edges", [0.0, 0.999], [-0.001, 1.0]),
    (LinkSettings, {}, "negatives", ["random", "hard"], ["easy"]),
    (LinkSettings, {"negatives": "hard"}, "negatives_per_edge", [2], [1, 0]),
    (settings_of(DECODERS.get("fermi-dirac")), {}, "t", [1e-9, 9.0], [0.0]),
]


@pytest.mark.parametrize(("section", "others", "name", "taken", "refused"), BOUNDS)
def test_bounds(section, others, name, taken, refused):
    for value in taken:
        assert getattr(section(**others, **{name: value}), name) == value
    for value in refused:
        with pytest.raises(SettingsError, match=name):
            section(**others, **{name: value})


def test_settings_that_cannot_act():
    """Said of a setting whenever another one leaves it without effect, and only then."""
    fermi = ("fermi_r", "fermi_t", "learn_fermi")
    for settings, idle in (
        (NodeSettings(), {"consistency_temperature"}),
        (NodeSettings(consistency=0.1), set()),
        (LinkSettings(), {"negatives_per_edge"}),
        (LinkSettings(negatives="hard"), set()),
        (LinkSettings(negatives="hard", decoder="fermi-dirac"), set()),
        (LinkSettings(negatives="hard", decoder="dot"), set(fermi)),
    ):
        assert set(vars(settings)) - set(settings.to_dict()) == idle
