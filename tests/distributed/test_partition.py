"""The folder of a partition: what is in it, what it costs, what is refused."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from partitions import cut, hub_graph, prepared_for, settings_of, weights_after
from thread_ranks import on_ranks

from hgde.distributed import Partition, PartitionError, Ranks, make_partition, start_run
from hgde.distributed.cores import bind_to_cores
from hgde.distributed.costs import costs_of
from hgde.distributed.cutting import METHODS, CutError, assign
from hgde.distributed.fit import check_together, settings_for
from hgde.distributed.lockstep import Lockstep, OutOfStep
from hgde.distributed.plan import Cut, Plan
from hgde.distributed.ranks import RankError
from hgde.kernels.cpu.threads import lent
from hgde.pipeline.settings import make_settings
from hgde.sections import SettingsError, overlay
from hgde.tasks import TaskError


@pytest.fixture
def made(tmp_path):
    settings = settings_of("nodes")
    prepared = prepared_for(settings)
    return cut(tmp_path, prepared, settings, pieces=5), settings, prepared


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pieces", [1, 2, 5, 13, 160])
def test_every_piece_has_nodes(method, pieces):
    graph = hub_graph().graph
    piece = assign(graph.indptr.numpy(), graph.indices.numpy(), pieces, method)
    assert set(piece.tolist()) == set(range(pieces))


def test_metis_cuts_fewer_edges_than_chance(tmp_path):
    settings = settings_of("nodes")
    prepared = prepared_for(settings)
    halos = {}
    for method in METHODS:
        partition = cut(tmp_path / method, prepared, settings, pieces=4, method=method)
        halos[method] = costs_of(partition, 16, 1)[-1]["boundary"]
    assert halos["metis"] < halos["random"]


def test_more_pieces_than_nodes_are_refused():
    graph = hub_graph().graph
    with pytest.raises(CutError, match="161"):
        assign(graph.indptr.numpy(), graph.indices.numpy(), 161, "random")


def test_the_pieces_are_the_graph(made):
    """Put together again, rows, features and labels are those that were cut, under the names of the nodes."""
    partition, _, prepared = made
    partition.check()
    ids = partition.array("ids")
    edges, seen = set(), []
    for number in range(partition.num_pieces):
        low, high = partition.starts[number : number + 2]
        indptr, indices, halo = (partition.piece_array(number, name) for name in ("indptr", "indices", "halo"))
        names = np.concatenate([ids[low:high], ids[halo]])
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        edges |= {(int(names[row]), int(names[column])) for row, column in zip(rows, indices, strict=True)}
        features = partition.piece_array(number, "features")
        assert np.array_equal(features, prepared.problem.inputs[torch.from_numpy(ids[low:high].copy())].numpy())
        seen += ids[low:high].tolist()
    graph = prepared.problem.graph
    assert edges == set(zip(graph.rows.tolist(), graph.indices.tolist(), strict=True))
    assert sorted(seen) == list(range(graph.num_nodes))


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_counted_bytes_are_those_of_the_model(made, ranks):
    """An epoch of training sends what the cost model says, and no more than 12 d H where a rank has one piece."""
    partition, settings, prepared = made
    sent = []
    for epochs in (1, 2):
        trained = weights_after(partition, settings, prepared, ranks, epochs=epochs)
        sent.append(sum(trainer.crew.ranks.sent for _, trainer in trained))
    row = next((row for row in costs_of(partition, 8, 2) if row["ranks"] == ranks), None)
    if row is None:  # the table has round numbers only
        assert ranks == 5
        return
    # Two evaluations with gradient, and two without for the validation score.
    expected = row["bytes_per_epoch"] + 2 * 4 * 8 * row["boundary"]
    assert sent[1] - sent[0] == expected
    assert row["bytes_per_epoch"] <= 12 * 8 * 2 * row["returned"]


def test_a_damaged_or_missing_file_is_named(made):
    partition, settings, _ = made
    path = partition.path / "pieces" / "0003" / "indices.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(PartitionError, match=r"0003/indices\.npy is damaged"):
        check_together(partition, settings, Ranks())
    path.unlink()
    with pytest.raises(PartitionError, match=r"0003/indices\.npy is missing"):
        check_together(partition, settings, Ranks())
    with pytest.raises(PartitionError, match="is not a partition"):
        Partition.open(partition.path / "pieces")


def test_every_rank_hears_of_a_damaged_piece(made):
    partition, settings, _ = made
    (partition.path / "pieces" / "0004" / "halo.npy").unlink()
    heard = []

    def work(ranks):
        try:
            check_together(partition, settings, ranks)
        except PartitionError as error:
            heard.append(str(error))

    on_ranks(2, work)
    assert len(heard) == 2
    assert all("rank 1" in words and "halo.npy is missing" in words for words in heard)


@pytest.mark.parametrize("what", ["settings", "versions", "data"])
def test_ranks_with_other_versions_or_data_refuse(made, monkeypatch, what):
    partition, settings, _ = made

    def work(ranks):
        mine, cut_anew = settings, partition
        if ranks.rank == 1 and what == "settings":
            mine = settings.replace({"training.lr": 0.5})
        if ranks.rank == 1 and what == "data":
            cut_anew = replace(partition, facts={**partition.facts, "files": {"ids.npy": "another hash"}})
        if what == "versions":
            found = iter([{"torch": "2.13"}, {"torch": "2.14"}][ranks.rank :])
            ranks.gather = lambda value, gather=ranks.gather: gather({**value, "versions": next(found)})
        with pytest.raises(RankError, match=f"rank 1 has other {what} than rank 0"):
            check_together(cut_anew, mine, ranks)

    on_ranks(2, work)


def test_what_the_partition_decides_cannot_be_given(made, tmp_path):
    with pytest.raises(SettingsError, match=r"data\.split"):
        settings_for(made[0], {"data": {"split": 3}})


def test_models_that_read_out_from_more_than_points_are_refused(made, tmp_path):
    with pytest.raises(PartitionError, match=r"leave out model\.own_readout"):
        start_run(made[0], {"model": {"own_readout": True}, "preset": "none"}, Ranks(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("preset", "name"), [("default-agreeing", r"task\.consistency"), ("default-labels", r"task\.labels")]
)
def test_presets_that_ask_for_what_partitions_have_not_are_refused(made, preset, name):
    with pytest.raises(PartitionError, match=rf"the preset {preset} is for training with {name}"):
        settings_for(made[0], {"preset": preset})


@pytest.mark.parametrize(("task", "name"), [("nodes", "labels"), ("links", "structure")])
def test_a_graph_is_not_cut_for_what_partitions_have_not(tmp_path, task, name):
    settings = settings_of(task)
    settings = make_settings(overlay(settings.to_dict(), {"task": {"name": task, name: True}}))
    with pytest.raises(TaskError, match=rf"task\.{name} is not supported on a partition"):
        make_partition(tmp_path / "parts", prepared_for(settings), settings, pieces=2, method="contiguous")


def test_other_models_are_refused(made):
    with pytest.raises(PartitionError, match="only the model hgde"):
        start_run(made[0], {"model": {"name": "gcn"}, "preset": "none"}, Ranks(), None)


def test_more_ranks_than_pieces(made):
    partition, settings, prepared = made
    with pytest.raises(RankError, match="5 pieces"):
        weights_after(partition, settings, prepared, 6)


def test_a_run_is_kept(made, tmp_path):
    partition, _, _ = made
    given = {"model": {"width": 4, "time": 1.0}, "training": {"epochs": 2}, "preset": "none"}
    summary = start_run(partition, given, Ranks(), tmp_path / "run").train()
    assert 0 <= summary.mean() <= 1
    assert (tmp_path / "run" / "seed-0" / "model.safetensors").exists()


@pytest.fixture
def bound(monkeypatch, tmp_path):
    """What ranks are bound to, on a machine with five cores and locks of its own."""
    calls = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 5, 6}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: calls.append(list(cores)), raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    processes = []

    def bind(rank):
        processes.append([])
        monkeypatch.setattr("hgde.distributed.cores._held", processes[-1])
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        calls.clear()
        bind_to_cores()
        return calls[0] if calls else None

    return bind


def test_ranks_are_bound_to_shares_of_the_cores(bound):
    assert [bound(rank) for rank in range(2)] == [[0, 1], [2, 5, 6]]


def test_cores_of_another_run_are_left_to_it_unless_forced(bound, monkeypatch):
    assert bound(1) == [2, 5, 6]
    assert bound(1) is None, "another run has them"
    assert bound(0) == [0, 1]
    monkeypatch.setenv("HGDE_BIND", "1")
    assert bound(1) == [2, 5, 6]


def test_ranks_are_not_bound_when_told_so_or_alone_or_too_many(bound, monkeypatch):
    monkeypatch.setenv("HGDE_BIND", "0")
    assert bound(0) is None
    monkeypatch.delenv("HGDE_BIND")
    for size in ("1", "6"):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", size)
        assert bound(0) is None


def test_rows_travel_and_gradients_come_back():
    """A plan on three ranks against the same gather and scatter done on the whole."""
    starts = (0, 3, 5, 9, 10)
    rows = torch.arange(20.0).reshape(10, 2)
    wanted = {0: [3, 9], 1: [0, 5, 8], 2: [0, 3], 3: [0, 5]}
    total = rows.clone()

    def work(ranks):
        cut = Cut(starts, ranks.size)
        mine = {k: torch.tensor(wanted[k]) for k in cut.pieces_of(ranks.rank)}
        plan = Plan(ranks, cut, mine)
        own = {k: rows[starts[k] : starts[k + 1]] for k in mine}
        every = dict(plan.spread(own))
        return every, dict(plan.collect({k: (k + 1.0) * every[k] for k in mine}))

    for piece in wanted:
        total[starts[piece] : starts[piece + 1]] *= piece + 1.0
    for piece, ids in wanted.items():
        total[ids] += (piece + 1.0) * rows[ids]
    for every, collected in on_ranks(3, work):
        for piece, got in every.items():
            assert torch.equal(got, torch.cat([rows[starts[piece] : starts[piece + 1]], rows[wanted[piece]]]))
            assert torch.equal(collected[piece], total[starts[piece] : starts[piece + 1]])


def test_pieces_share_the_buffers_of_kernels():
    """Each with its own, a rank would hold as many as it has pieces."""
    step = Lockstep([0, 1, 2])
    places = [step.run(lambda number: lent("rows", 1000 - number, torch.float32).data_ptr()) for _ in range(2)]
    assert len({place for run in places for place in run.values()}) == 1


def test_pieces_out_of_step_are_noticed():
    step = Lockstep([0, 1])

    def one(values):
        return list(values.items())

    def two(values):
        return list(values.items())

    with pytest.raises(OutOfStep):
        step.run(lambda number: step.meet(number, one if number else two, 0))
    with pytest.raises(ZeroDivisionError):
        step.run(lambda number: 1 // number)
