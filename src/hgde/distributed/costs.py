"""What a partition will cost, before anything is run."""

from __future__ import annotations

from typing import Any

from hgde.distributed.cutting import cost
from hgde.distributed.partition import Partition

RANKS = (1, 2, 3, 4, 8, 16, 32, 64)


def costs_of(partition: Partition, width: int, evaluations: int) -> list[dict[str, Any]]:
    """A row for each number of ranks: ``H/N``, balance, bytes per epoch over all ranks, memory of the largest rank."""
    halos = [partition.piece_array(piece, "halo") for piece in range(partition.num_pieces)]
    work = [int(edges) for edges in partition.facts["edges_of"]]
    rows = []
    for ranks in RANKS:
        if ranks > partition.num_pieces:
            break
        at = cost(partition.starts, halos, work, ranks)
        halo = sum(len(ids) for ids in halos)
        rows.append(
            {
                "ranks": ranks,
                "boundary": at.boundary,
                "returned": at.returned,
                "ratio": at.ratio,
                "balance": at.largest_share * ranks,
                "bytes_per_epoch": evaluations * at.bytes_per_evaluation(width),
                "memory_per_rank": at.memory_per_rank(
                    partition.num_edges, int(partition.facts["feature_bytes"]), width, evaluations, halo
                ),
            }
        )
    return rows
