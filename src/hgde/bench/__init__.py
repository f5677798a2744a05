"""Speed and memory of the package beside the bars it is held to."""

from hgde.bench import compare
from hgde.bench.measure import Row, describe_machine
from hgde.bench.suite import MEASUREMENTS, run

__all__ = ["MEASUREMENTS", "Row", "compare", "describe_machine", "run"]
