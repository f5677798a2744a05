"""Every diffusivity names the compiled parts that its weights need, so that they are made before they are asked for."""

import pytest

from hgde.diffusion import DIFFUSIVITIES, make_diffusivity
from hgde.diffusion.diffusivity import LOCAL
from hgde.kernels import warm_up

NEEDED = {"attention": ("edge", "attention"), "ricci": ("channel",)}


@pytest.mark.parametrize("name", DIFFUSIVITIES)
def test_parts_are_known(name, monkeypatch):
    asked = []
    monkeypatch.setattr("hgde.kernels.ops.prepare", lambda part, dtype: asked.append(part))
    parts = make_diffusivity(name, 3).kernels
    warm_up(*parts)
    assert len(asked) in (0, len(parts)), "none where nothing is compiled"
    if name in LOCAL:
        assert parts == NEEDED.get(name, ("edge",))


@pytest.mark.parametrize("local", LOCAL)
def test_a_mixture_needs_its_local_part_s_too(local):
    own = make_diffusivity(local, 3).kernels
    assert make_diffusivity("local-global", 3, local=local).kernels == (*own, "global")
    assert make_diffusivity("global", 3).kernels == ("edge", "global")
    assert make_diffusivity("linear-global", 3).kernels == ("edge", "advance")
