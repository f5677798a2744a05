"""Thirty epochs on real graphs: the same bits on 1 to 4 ranks and with pieces on disk."""

import pytest
from partitions import assert_same, cut, prepared_for, settings_of, weights_after

from hgde.data import open_dataset
from hgde.data.settings import DataSettings
from hgde.distributed.scratch import Scratch

CASES = [
    ("cora", "nodes", "isotropic", "heuler"),
    ("cora", "nodes", "attention", "hrk4"),
    ("cora", "nodes", "ricci", "rk4"),
    ("cora", "links", "isotropic", "hrk4"),
    ("cora", "links", "attention", "rk4"),
    ("cora", "links", "ricci", "heuler"),
    ("pubmed", "nodes", "isotropic", "rk4"),
    ("pubmed", "nodes", "attention", "heuler"),
    ("pubmed", "links", "isotropic", "heuler"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task", "diffusivity", "solver"), CASES)
def test_thirty_epochs_give_the_same_bits(tmp_path, data_file, name, task, diffusivity, solver):
    dataset = open_dataset(DataSettings(name=name, root=str(data_file(name).parent)))
    model = {"diffusivity": {"name": diffusivity}, "solver": {"name": solver}, "width": 16}
    settings = settings_of(task, model, {"epochs": 30, "validate_every": 30})
    prepared = prepared_for(settings, dataset)
    partition = cut(tmp_path, prepared, settings, pieces=4, ricci=0.5 if diffusivity == "ricci" else None)
    expected = weights_after(partition, settings, prepared, 1, epochs=30)[0][0]
    for ranks in (2, 3, 4):
        for state, _ in weights_after(partition, settings, prepared, ranks, epochs=30):
            assert_same(expected, state)
    scratch = Scratch(tmp_path, smallest=1 << 12)
    ((state, _),) = weights_after(partition, settings, prepared, 1, epochs=30, scratch=scratch)
    assert_same(expected, state)
    scratch.close()
