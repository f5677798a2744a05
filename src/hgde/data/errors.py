"""The one error of the data layer."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """Data that cannot be used. The message names the file, where possible the line and column, and a way out.

    >>> str(DataError.at("nodes.csv", "expected a finite number, got 'tall'", line=6, column="height"))
    "nodes.csv, line 6, column height: expected a finite number, got 'tall'"
    """

    @classmethod
    def at(
        cls,
        path: Path | str,
        problem: str,
        *,
        line: int | None = None,
        column: str | int | None = None,
        unit: str = "line",
    ) -> DataError:
        """An error about one place of a file; columns are named where they have a name, else counted from 1."""
        where = str(path)
        if line is not None:
            where += f", {unit} {line}"
        if column is not None:
            where += f", column {column}"
        return cls(f"{where}: {problem}")


LARGEST_UNPACKED = 4 << 30
"""Bytes that a packed file may always unpack to; beyond, at most 20 times its own size, so that none fills memory."""


def unpacked_limit(packed: int) -> int:
    """How many bytes a file of ``packed`` bytes may unpack to."""
    return max(LARGEST_UNPACKED, 20 * packed)


class DataWarning(UserWarning):
    """Something about the data that a user should know, although the answer is still right.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     warnings.warn("two columns are constant", DataWarning)
    >>> said[0].category.__name__
    'DataWarning'
    """
