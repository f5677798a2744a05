"""A run of the benchmark beside an earlier one, so that a slow-down shows."""

from __future__ import annotations

import json
from pathlib import Path

from hgde.bench.measure import Row

NOISE = 0.1
"""Figures move by so much from run to run."""


class BenchFileError(ValueError):
    """A file of figures that cannot be read."""


def stored(path: Path) -> dict[str, float]:
    """The figures of an earlier run by name, those that were taken."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        return {row["name"]: float(row["value"]) for row in rows if row["value"] is not None}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchFileError(f"{path} is not a file of figures that `hgde bench` wrote: {error}") from None


def is_worse(row: Row, before: float) -> bool:
    """Whether a figure has moved the wrong way by more than noise."""
    if row.value is None or row.sense == "report":
        return False
    return row.value < before * (1 - NOISE) if row.sense == "at least" else row.value > before * (1 + NOISE)


def words(row: Row, before: float) -> str:
    """How a figure stands to the earlier one."""
    if row.value is None:
        return f"before {before:.2f}"
    return f"before {before:.2f}{': WORSE' if is_worse(row, before) else ''}"
