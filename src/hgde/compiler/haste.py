"""Whether the work at hand is too short to repay well-made kernels: then they are made in half the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

QUICK = "quick"
"""What follows the ``@`` in the name of a kernel that was made in haste."""
_hasty = False


def is_hasty() -> bool:
    return _hasty


@contextmanager
def in_haste() -> Iterator[None]:
    """Inside, in this process, kernels that are not there yet are hardly optimised, and one serves all widths.

    The results have the same bits. Such kernels are stored under names of their own: other work never meets them."""
    global _hasty
    before, _hasty = _hasty, True
    try:
        yield
    finally:
        _hasty = before
