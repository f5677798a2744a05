"""A model on a partition: the tables that it gives on the whole graph, piece by piece into one file."""

import numpy as np
import pandas as pd
import pytest
import torch
from partitions import cut, hub_graph, prepared_for, settings_of
from thread_ranks import on_ranks

from hgde.distributed import PartitionError, Ranks, start_run
from hgde.distributed.predicting import Predictor
from hgde.distributed.scratch import Scratch
from hgde.pipeline import load

GIVEN = {"model": {"width": 8, "time": 2.0}, "training": {"epochs": 3}, "preset": "none"}


@pytest.fixture(params=["nodes", "links"])
def trained(request, tmp_path):
    settings = settings_of(request.param)
    prepared = prepared_for(settings)
    partition = cut(tmp_path, prepared, settings)
    start_run(partition, GIVEN, Ranks(), tmp_path / "run").train()
    return tmp_path / "run", partition, prepared


def test_tables_of_any_number_of_ranks_are_those_of_the_whole(tmp_path, trained):
    run, partition, prepared = trained

    def write(ranks):
        Predictor(load(run), partition, ranks).write_predictions(tmp_path / f"table{ranks.size}.parquet")

    for size in (1, 3):
        on_ranks(size, write)
    one, three = (pd.read_parquet(tmp_path / f"table{size}.parquet") for size in (1, 3))
    pd.testing.assert_frame_equal(one, three)
    fitted = load(run)
    fitted.own = prepared
    whole = pd.DataFrame(fitted.predict())
    keys = ["id"] if "id" in one else ["low", "high", "part", "truth"]
    for table in (one, whole):
        if "source" in table:
            ends = np.sort(table[["source", "target"]].astype(int).to_numpy(), axis=1)
            table["low"], table["high"] = ends[:, 0], ends[:, 1]
    one, whole = (table.sort_values(keys).reset_index(drop=True) for table in (one, whole))
    chance = "confidence" if "id" in one else "probability"
    assert one[keys].astype(str).equals(whole[keys].astype(str))
    assert np.allclose(one[chance], whole[chance], atol=1e-5)
    assert one["part"].equals(whole["part"])


def test_tables_made_out_of_core_are_the_same_bytes(tmp_path, trained):
    run, partition, _ = trained
    scratch = Scratch(tmp_path, smallest=64)
    Predictor(load(run), partition, Ranks()).write_predictions(tmp_path / "held.csv")
    Predictor(load(run), partition, Ranks(), scratch).write_predictions(tmp_path / "disk.csv")
    assert scratch.written > 0
    scratch.close()
    assert (tmp_path / "disk.csv").read_bytes() == (tmp_path / "held.csv").read_bytes()


def test_points_are_those_of_the_whole(tmp_path, trained):
    run, partition, prepared = trained
    rows = Predictor(load(run), partition, Ranks()).write_points(tmp_path / "points.csv")
    table = pd.read_csv(tmp_path / "points.csv").sort_values("id")
    assert rows == len(table) == hub_graph().num_nodes
    learner = load(run).learner.eval()
    with torch.no_grad():
        points = learner.model.embed(prepared.problem.inputs, prepared.problem.graph)
    assert np.allclose(table.filter(like="z").to_numpy(), points.numpy(), atol=1e-5)


def test_pairs_by_name(tmp_path, trained):
    run, partition, _ = trained
    predictor = Predictor(load(run), partition, Ranks())
    numbers = predictor.numbers_of(np.array(["7", "0"], dtype=object))
    assert partition.array("ids")[numbers].tolist() == [7, 0]
    with pytest.raises(PartitionError, match="'nobody'"):
        predictor.numbers_of(np.array(["nobody"], dtype=object))
    if predictor.fitted.settings.task.name == "links":
        pairs = torch.from_numpy(np.stack([numbers, numbers[::-1]]))
        assert predictor.write_pairs(tmp_path / "pairs.csv", pairs) == 2
        chances = pd.read_csv(tmp_path / "pairs.csv")["probability"]
        assert chances[0] == pytest.approx(chances[1], abs=1e-6)
