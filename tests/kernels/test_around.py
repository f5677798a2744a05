import pytest
import torch

from hgde.graph import Graph

pytest.importorskip("triton", reason="the package triton is not installed")
from hgde.kernels.triton.around import around  # needs it


def test_every_edge_stands_once_at_either_end():
    generator = torch.Generator().manual_seed(0)
    graph = Graph.from_edges(torch.randint(0, 30, (2, 120), generator=generator), 30, undirected=False)
    near = around(graph.indptr, graph.indices)
    rows = torch.repeat_interleave(torch.arange(30), graph.indptr.diff())
    node = torch.repeat_interleave(torch.arange(30), near.start.long().diff())
    for places, ends in ((near.arriving, (rows, graph.indices)), (near.leaving, (graph.indices, rows))):
        known = places >= 0
        assert sorted(places[known].tolist()) == list(range(graph.num_edges))
        assert torch.equal(ends[0][places[known].long()], node[known])
        assert torch.equal(ends[1][places[known].long()], near.neighbours[known].long())


def test_edges_both_ways_share_a_place():
    graph = Graph.from_edges([(0, 1), (1, 2), (0, 2)], 4)
    near = around(graph.indptr, graph.indices)
    assert near.start.tolist() == [0, 2, 4, 6, 6]
    assert (near.arriving >= 0).all()
    assert (near.leaving >= 0).all()
