"""The kernels of the demonstration. Needs no torch: they are compiled while a process loads its libraries."""

from __future__ import annotations

from hgde.compiler.haste import in_haste
from hgde.compiler.load import prepare
from hgde.kernels.ahead import warm_up


def begin_to_compile() -> None:
    """All kernels that the runs will need, in the order they need them, unless that has begun already."""
    with in_haste():
        warm_up("sparse", "encoder", "edge", "decoder", "origin", "adam")
        prepare(("searches.search_64",), "float64")
