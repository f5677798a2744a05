"""Named raw columns of a node table, as they were read: numbers, booleans and categories, missing cells marked.

Nothing is decided here that a model depends on; :mod:`hgde.data.preprocessing` makes numbers of them.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from torch import Tensor

from hgde.data.errors import DataError

Array = np.ndarray[Any, Any]
Kind = Literal["number", "boolean", "category"]

MISSING_NUMBERS = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""Cells that mean "no number" in a column whose other cells are numbers, whatever their case."""

_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


@dataclass(frozen=True, eq=False)
class Column:
    """One column of ``N`` cells.

    Args:
        name: as in the table's header.
        kind: ``number``, ``boolean`` or ``category``.
        values: float64 ``[N]``: the numbers (booleans as 0 and 1), or the place of each cell's text in ``categories``;
            NaN where a cell is missing.
        categories: the distinct texts of a category column, sorted, those that are numbers first and by size.
        problem: words about a cell that is probably a mistake, such as text in a column of numbers.

    >>> import numpy as np
    >>> column = Column.from_cells("age", np.array(["31", "", "45"], dtype=object))
    >>> column.kind, column.missing.tolist(), column.texts
    ('number', [False, True, False], ['31', '', '45'])
    """

    name: str
    kind: Kind
    values: Array
    categories: tuple[str, ...] = ()
    problem: str | None = None

    @classmethod
    def from_cells(cls, name: str, cells: Array, where: Any = None) -> Column:
        """A column from an array of numbers, booleans or strings (``""``: missing); its kind is what the cells allow.

        ``where(row)`` names the place of a cell for messages. Numbers are a column whose cells all are, those that
        :data:`MISSING_NUMBERS` lists left out; booleans one of ``true``/``false`` or ``yes``/``no``.
        """
        if cells.dtype.kind == "b":
            return cls(name, "boolean", cells.astype(np.float64))
        if cells.dtype.kind == "M":
            # Milliseconds since 1970: a number like any other, and exact in float64.
            stamps = cells.astype("datetime64[ns]")
            return cls(name, "number", np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / 1e6))
        if cells.dtype.kind in "iuf":
            values = cells.astype(np.float64)
            return cls(name, "number", values, problem=_infinite(name, values, where, cells))
        texts = np.array(["" if cell is None else str(cell).strip() for cell in cells.tolist()], dtype=object)
        return cls._from_texts(name, texts, where)

    @classmethod
    def _from_texts(cls, name: str, texts: Array, where: Any) -> Column:
        import pandas as pd

        codes, distinct = pd.factorize(texts)
        words = [str(word) for word in distinct.tolist()]
        numbers = _numbers(words)
        absent = np.array([word.lower() in MISSING_NUMBERS for word in words], dtype=bool)
        is_number = ~np.isnan(numbers) & ~absent
        if words and (is_number | absent).all() and is_number.any():
            values = np.where(absent, np.nan, numbers)[codes]
            return cls(name, "number", values, problem=_infinite(name, values, where, texts))
        present = [word.lower() for word in words if word]
        if present and set(present) <= _TRUTH.keys():
            table = np.array([_TRUTH.get(word.lower(), np.nan) for word in words])
            return cls(name, "boolean", table[codes])
        problem = None
        if is_number.sum() > 0.5 * len(words):
            # One word among numbers is a slip of the pen far more often than a category.
            stray = int(np.flatnonzero(~(is_number | absent))[0])
            row = int(np.flatnonzero(codes == stray)[0])
            problem = _at(name, where, row, f"expected a finite number, got {words[stray][:40]!r}")
        return replace(cls.from_labels(name, texts), problem=problem)

    @classmethod
    def from_labels(cls, name: str, texts: Iterable[Any]) -> Column:
        """A category column of the texts exactly as they are; an empty one is missing."""
        import pandas as pd

        cells = np.array([str(text) for text in texts], dtype=object)
        codes, distinct = pd.factorize(cells)
        words = [str(word) for word in distinct.tolist()]
        ordered = sorted((word for word in words if word), key=_numbers_first)
        place = {word: float(number) for number, word in enumerate(ordered)}
        table = np.array([place.get(word, np.nan) for word in words], dtype=np.float64)
        return cls(name, "category", table[codes] if words else np.zeros(0), tuple(ordered))

    @property
    def num_rows(self) -> int:
        return int(self.values.shape[0])

    @property
    def missing(self) -> Array:
        """Where there is no value, ``[N]`` of booleans."""
        return np.isnan(self.values)

    @cached_property
    def texts(self) -> list[str]:
        """The cells as texts, missing ones empty; whole numbers without a decimal point."""
        if self.kind == "category":
            return ["" if np.isnan(code) else self.categories[int(code)] for code in self.values.tolist()]
        if self.kind == "boolean":
            return ["" if np.isnan(value) else ("true" if value else "false") for value in self.values.tolist()]
        return ["" if np.isnan(value) else number_text(value) for value in self.values.tolist()]

    def select(self, rows: Array) -> Column:
        return replace(self, values=self.values[rows])

    def as_category(self) -> Column:
        """The same cells with each distinct value a category."""
        return self if self.kind == "category" else replace(Column.from_labels(self.name, self.texts), problem=None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Column):
            return NotImplemented
        same = (self.name, self.kind, self.categories) == (other.name, other.kind, other.categories)
        return same and np.array_equal(self.values, other.values, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]  # equal by value, and values are arrays


class Columns(Mapping[str, Column]):
    """Columns of equal length by name, in the table's order. ``shape`` is ``(N, number of columns)``.

    >>> columns = Columns.from_arrays({"age": [31, 45], "colour": ["blue", "green"]})
    >>> columns, columns["colour"].categories
    (Columns(2 rows; age: number, colour: category), ('blue', 'green'))
    """

    def __init__(self, columns: Iterable[Column], num_rows: int | None = None) -> None:
        self._columns = {column.name: column for column in columns}
        lengths = {column.num_rows for column in self._columns.values()}
        if len(lengths) > 1:
            raise DataError(f"columns have different lengths: {sorted(lengths)[:5]}")
        self.num_rows = lengths.pop() if lengths else int(num_rows or 0)

    @classmethod
    def from_frame(cls, frame: Any) -> Columns:
        """The columns of a pandas DataFrame; its index is not one of them."""
        names = [str(name) for name in frame.columns]
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise DataError(f"two columns are called {repeated[0]!r}; rename one")
        made = [_from_series(name, frame.iloc[:, place]) for place, name in enumerate(names)]
        return cls(made, len(frame))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Columns:
        """Columns from arrays by name: numbers, booleans or strings."""
        return cls([Column.from_cells(name, np.asarray(cells)) for name, cells in arrays.items()])

    @property
    def shape(self) -> tuple[int, int]:
        return self.num_rows, len(self._columns)

    @property
    def names(self) -> list[str]:
        return list(self._columns)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of names, kinds and cells, in the table's order."""
        digest = hashlib.sha256(b"hgde-columns-1")
        for column in self.values():
            texts = "\x00".join((column.name, column.kind, *column.categories)).encode("utf-8", "surrogatepass")
            digest.update(len(texts).to_bytes(8, "little") + texts)
            # Every missing cell is the same, whatever NaN it was read as.
            cells = np.where(column.missing, np.nan, column.values).astype("<f8")
            digest.update(cells.size.to_bytes(8, "little") + cells.tobytes())
        return digest.hexdigest()

    def select(self, nodes: Tensor | Array) -> Columns:
        """The rows of ``nodes``, in the given order."""
        rows = nodes.cpu().numpy() if isinstance(nodes, Tensor) else np.asarray(nodes)
        return Columns([column.select(rows) for column in self.values()], int(rows.shape[0]))

    def is_plain(self) -> bool:
        """Whether every cell is a finite number: a matrix with names."""
        return all(
            column.kind == "number" and column.problem is None and bool(np.isfinite(column.values).all())
            for column in self.values()
        )

    def to_matrix(self) -> Array:
        """``[N, F]`` float64 of columns that hold numbers or booleans; NaN where missing."""
        matrix = np.empty(self.shape, dtype=np.float64)
        for place, column in enumerate(self.values()):
            matrix[:, place] = column.values
        return matrix

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        kinds = ", ".join(f"{column.name}: {column.kind}" for column in list(self.values())[:6])
        more = ", ..." if len(self) > 6 else ""
        return f"Columns({self.num_rows} rows; {kinds}{more})"


def number_text(value: float) -> str:
    """A number as a table would print it: ``3`` rather than ``3.0``."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**63 else repr(float(value))


def _from_series(name: str, series: Any) -> Column:
    import pandas as pd

    kind = series.dtype.kind if hasattr(series.dtype, "kind") else "O"
    if isinstance(series.dtype, pd.CategoricalDtype) or kind not in "biufM":
        present = series[~series.isna()]
        if len(present) and all(isinstance(cell, bool | np.bool_) for cell in present.tolist()):
            values = np.array([np.nan if pd.isna(cell) else float(cell) for cell in series.tolist()])
            return Column(name, "boolean", values)
        texts = np.array(["" if pd.isna(cell) else str(cell) for cell in series.tolist()], dtype=object)
        if isinstance(series.dtype, pd.CategoricalDtype):
            return Column.from_labels(name, texts)
        return Column.from_cells(name, texts, lambda row: f"row {row + 1}, column {name}")
    if kind == "M":
        return Column.from_cells(name, series.dt.tz_localize(None).to_numpy(dtype="datetime64[ns]"))
    if kind == "b" and not series.isna().any():
        return Column(name, "boolean", np.array(series, dtype=np.float64))
    numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
    made = Column.from_cells(name, numbers, lambda row: f"row {row + 1}, column {name}")
    return replace(made, kind="boolean") if kind == "b" else made


def _numbers(words: list[str]) -> Array:
    """Each word as a number, NaN where it is none; beyond all doubles it is infinite (pandas 2 calls it no number)."""
    import pandas as pd

    numbers = np.array(pd.to_numeric(np.array(words, dtype=object), errors="coerce"), dtype=np.float64)
    for place in np.flatnonzero(np.isnan(numbers)):
        with suppress(ValueError):
            if math.isinf(number := float(words[place])):
                numbers[place] = number
    return numbers


def _infinite(name: str, values: Array, where: Any, cells: Array) -> str | None:
    wrong = np.flatnonzero(np.isinf(values))
    if not wrong.size:
        return None
    row = int(wrong[0])
    return _at(name, where, row, f"expected a finite number, got {str(cells[row])[:40]!r}")


def _at(name: str, where: Any, row: int, problem: str) -> str:
    place = where(row) if where is not None else f"row {row + 1}, column {name}"
    return f"{place}: {problem}"


def _numbers_first(text: str) -> tuple[int, float, str]:
    try:
        number = float(text)
    except ValueError:
        return 1, 0.0, text
    return (0, number, text) if np.isfinite(number) else (1, 0.0, text)
