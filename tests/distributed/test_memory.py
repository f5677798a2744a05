"""Beyond memory: pieces on disk give the same bits, batches of pieces learn, the choice is explained."""

from pathlib import Path

import pytest
import torch
from partitions import assert_same, cut, prepared_for, settings_of, weights_after

from hgde.distributed import Ranks, start_run
from hgde.distributed.batches import union
from hgde.distributed.flow import hgde_of
from hgde.distributed.memory import BATCHES, DISK, HELD, choose_way, parse_size
from hgde.distributed.scratch import Scratch
from hgde.sections import SettingsError


@pytest.mark.parametrize("diffusivity", ["isotropic", "ricci"])
def test_tensors_on_disk_change_nothing(tmp_path, diffusivity):
    settings = settings_of("nodes", {"diffusivity": {"name": diffusivity}})
    prepared = prepared_for(settings)
    partition = cut(tmp_path, prepared, settings, ricci=0.5)
    expected = weights_after(partition, settings, prepared, 1, epochs=2)[0][0]
    scratch = Scratch(tmp_path, smallest=1024)
    ((state, _),) = weights_after(partition, settings, prepared, 1, epochs=2, scratch=scratch)
    assert_same(expected, state)
    assert scratch.written > 50_000
    scratch.close()
    assert not scratch.folder.exists()


def test_what_autograd_keeps_is_written_and_its_room_used_again(tmp_path):
    scratch = Scratch(tmp_path, smallest=64)
    sizes = []
    for _ in range(3):
        x = torch.randn(100, requires_grad=True)
        with scratch.saving():
            y = (x.exp() * x.exp()).sum()
        y.backward()
        assert torch.allclose(x.grad, 2 * (2 * x.detach()).exp())
        del y
        sizes.append(sum(file.stat().st_size for file in scratch.folder.iterdir()))
    assert 0 < sizes[0] == sizes[1] == sizes[2]
    scratch.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 4096, 100_000, 1_000_003])
def test_stored_tensors_come_back_with_their_strides(tmp_path, size):
    scratch = Scratch(tmp_path, smallest=1)
    tensors = [torch.randn(size), torch.randn(size, 2).T, torch.arange(3 * size).view(size, 3)]
    kept = [scratch._pack(tensor) for tensor in tensors]
    for tensor, other in zip(tensors, kept, strict=True):
        back = scratch._unpack(other)
        assert torch.equal(back, tensor)
        assert back.stride() == tensor.stride() or size == 1
    scratch.close()


def test_pages_of_a_piece_at_rest_go_and_come_back(tmp_path):
    scratch = Scratch(tmp_path, smallest=1024)
    values = torch.randn(3_000_000)
    mapped = scratch.mapped(values, piece=4)
    assert torch.equal(mapped, values)
    before = resident_files()
    scratch.rest(4)
    assert before - resident_files() > 10 * 2**20
    assert torch.equal(mapped, values)
    scratch.close()


def resident_files():
    """Bytes of mapped files that are in this process's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile"))


GIVEN = {"model": {"width": 8, "time": 2.0}, "training": {"epochs": 8, "lr": 0.05}, "preset": "none"}


@pytest.fixture
def partition(tmp_path):
    settings = settings_of("nodes")
    return cut(tmp_path, prepared_for(settings), settings)


def test_the_way_follows_from_the_memory(tmp_path, partition, monkeypatch):
    monkeypatch.setattr("hgde.distributed.memory.PROGRAM", 0)
    held = start_run(partition, GIVEN, Ranks(), None)
    assert held.way.mode == HELD
    assert "all in memory" in held.way.words
    disk = start_run(partition, GIVEN, Ranks(), tmp_path / "disk", memory=110_000)
    assert disk.way.mode == DISK, disk.way.words
    assert disk.train().outcomes[0].validation == held.train().outcomes[0].validation
    assert not list((tmp_path / "disk").glob(".scratch*"))
    with pytest.raises(SettingsError, match="more pieces"):
        start_run(partition, GIVEN, Ranks(), None, memory=100)


def test_predictions_are_exact_or_refused(partition, monkeypatch):
    monkeypatch.setattr("hgde.distributed.memory.PROGRAM", 0)
    model = hgde_of(start_run(partition, GIVEN, Ranks(), None).learner(0))
    assert choose_way(partition, 1, model, 100_000, learns=False).mode == HELD
    with pytest.raises(SettingsError, match="allow more memory"):
        choose_way(partition, 1, model, 1000, learns=False)


def test_batches_of_pieces_learn(partition, monkeypatch):
    monkeypatch.setattr("hgde.distributed.memory.PROGRAM", 0)
    run = start_run(partition, GIVEN, Ranks(), None, memory=70_000)
    assert run.way.mode == BATCHES, run.way.words
    assert "not exact" in run.way.words
    assert run.train().mean() > 0.7


def test_the_union_of_all_pieces_is_the_graph(tmp_path):
    settings = settings_of("nodes")
    prepared = prepared_for(settings)
    partition = cut(tmp_path, prepared, settings)
    _, trainer = weights_after(partition, settings, prepared, 1, epochs=1)[0]
    graph, features, part = union(list(trainer.crew.pieces.values()))
    ids = torch.from_numpy(partition.array("ids").copy())
    whole = prepared.problem.graph.subgraph(ids)
    assert torch.equal(graph.indptr, whole.indptr)
    assert torch.equal(graph.indices, whole.indices)
    assert torch.equal(features, prepared.problem.inputs[ids])
    assert sorted(ids[part.items].tolist()) == sorted(prepared.problem.parts["train"].items.tolist())
    some, _, _ = union([trainer.crew.pieces[0], trainer.crew.pieces[3]])
    chosen = torch.cat([ids[partition.starts[k] : partition.starts[k + 1]] for k in (0, 3)])
    assert torch.equal(some.indices, prepared.problem.graph.subgraph(chosen).indices)


@pytest.mark.parametrize(("text", "size"), [("8GiB", 8 * 2**30), ("500 MB", 500 * 2**20), ("1.5k", 1536), ("7", 7)])
def test_sizes_in_words(text, size):
    assert parse_size(text) == size
    with pytest.raises(SettingsError, match="8GiB"):
        parse_size(f"{text} apples")
