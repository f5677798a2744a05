"""Graphs beyond one process and beyond memory: cut into pieces, trained on any number of ranks to the same bits."""

from hgde.distributed.cutting import CutError
from hgde.distributed.fit import PartitionedRun, resumed_run, settings_for, start_run
from hgde.distributed.make import make_partition
from hgde.distributed.partition import Partition, PartitionError
from hgde.distributed.ranks import RankError, Ranks, join

__all__ = [
    "CutError",
    "Partition",
    "PartitionError",
    "PartitionedRun",
    "RankError",
    "Ranks",
    "join",
    "make_partition",
    "resumed_run",
    "settings_for",
    "start_run",
]
