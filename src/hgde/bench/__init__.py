"""Speed and memory of the package beside the bars it is held to."""

from hgde.bench.measure import Row, describe_machine
from hgde.bench.suite import MEASUREMENTS, run

__all__ = ["MEASUREMENTS", "Row", "describe_machine", "run"]
