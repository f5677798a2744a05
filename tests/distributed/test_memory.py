"""Beyond memory: pieces on disk give the same bits, batches of pieces learn, the choice is explained."""

import pytest
import torch
from partitions import assert_same, cut, prepared_for, settings_of, weights_after

from hgde.distributed.scratch import Scratch


@pytest.mark.parametrize("diffusivity", ["isotropic", "attention", "ricci", "symmetric"])
def test_tensors_on_disk_change_nothing(tmp_path, diffusivity):
    settings = settings_of("nodes", {"diffusivity": {"name": diffusivity}, "solver": {"name": "rk4"}})
    prepared = prepared_for(settings)
    partition = cut(tmp_path, prepared, settings, ricci=0.5)
    expected = weights_after(partition, settings, prepared, 1, epochs=2)[0][0]
    scratch = Scratch(tmp_path, smallest=64)
    ((state, _),) = weights_after(partition, settings, prepared, 1, epochs=2, scratch=scratch)
    assert_same(expected, state)
    assert scratch.written > 100_000
    scratch.close()
    assert not scratch.folder.exists()


def test_what_autograd_keeps_is_written_and_removed(tmp_path):
    scratch = Scratch(tmp_path, smallest=64)
    x = torch.randn(100, requires_grad=True)
    with scratch.saving():
        y = (x.exp() * x.exp()).sum()
    assert len(list(scratch.folder.iterdir())) > 0
    y.backward()
    assert torch.allclose(x.grad, 2 * (2 * x.detach()).exp())
    del y
    assert list(scratch.folder.iterdir()) == []
