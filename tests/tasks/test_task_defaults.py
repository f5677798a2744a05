"""Settings of tasks that are left out: what the words of their declarations say."""

import pytest
import torch

from hgde.tasks.links import LinkSettings
from hgde.tasks.nodes import NodeSettings, disagreement


def test_two_passes_are_drawn_to_a_sharper_mean_unless_said_otherwise():
    """Squared and normalised, a temperature of 1/2; how much that counts is off."""
    left_out = NodeSettings(consistency=1.0)
    passes = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    chances = passes.softmax(-1)
    sharp = chances.mean(0) ** 2
    sharp = sharp / sharp.sum(-1, keepdim=True)
    apart = (chances - sharp).square().sum(-1).mean()
    assert float(disagreement(passes, left_out.consistency_temperature)) == pytest.approx(float(apart))
    assert NodeSettings().consistency == 0.0
    assert NodeSettings().labels_per_class is None
    assert NodeSettings().class_weight == "none"


def test_links_are_told_from_random_pairs_by_a_fixed_decoder_on_all_edges_unless_said_otherwise():
    """As likely as not at the squared distance 2, e times less likely for each further 1."""
    settings = LinkSettings()
    assert (settings.fermi_r, settings.fermi_t, settings.learn_fermi) == (2.0, 1.0, False)
    assert (settings.hidden_edges, settings.negatives) == (0.0, "random")
    assert LinkSettings(negatives="hard").negatives_per_edge == 100
