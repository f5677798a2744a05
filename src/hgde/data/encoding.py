"""Columns of numbers, booleans and categories as one matrix of numbers: fitted once, matched by name ever after."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.data.columns import Column, Columns
from hgde.data.errors import DataError, DataWarning

Array = np.ndarray[Any, Any]

_MAX_CATEGORIES = 1000


@dataclass(frozen=True)
class ColumnCode:
    """How one column is encoded.

    ``fill`` replaces missing numbers; ``categories`` each get a column of 0 and 1; ``indicator`` adds one that says
    where a value is missing. ``dropped`` gives the reason why a column says nothing and is left out.
    """

    name: str
    kind: str
    fill: float = 0.0
    categories: tuple[str, ...] = ()
    indicator: bool = False
    dropped: str = ""

    @property
    def outputs(self) -> list[str]:
        """Names of the columns it becomes."""
        if self.dropped:
            return []
        made = [f"{self.name}={text}" for text in self.categories] if self.kind == "category" else [self.name]
        return made + ([f"{self.name} missing"] if self.indicator else [])

    @property
    def coded(self) -> list[bool]:
        """For each of them, whether it is 0 or 1 by construction."""
        return [self.kind == "category"] * (len(self.outputs) - self.indicator) + [True] * self.indicator


@dataclass(frozen=True)
class ColumnEncoder:
    """The codes of all columns, in the order of the training table. ``missing`` is the setting of that name."""

    codes: tuple[ColumnCode, ...]
    missing: str

    @classmethod
    def fit(cls, columns: Columns, categorical: tuple[str, ...], missing: str) -> ColumnEncoder:
        """Learn fills and categories; labels play no part.

        Raises:
            DataError: for a cell that is probably a mistake, a missing value where those are errors, or a category
                with more than 1,000 distinct values.
        """
        codes = tuple(_fit_column(column, column.name in categorical, missing) for column in columns.values())
        for code in codes:
            if code.dropped:
                warnings.warn(f"column {code.name!r} is left out: {code.dropped}", DataWarning, stacklevel=2)
        return cls(codes, missing)

    @property
    def used(self) -> list[ColumnCode]:
        return [code for code in self.codes if not code.dropped]

    @property
    def names(self) -> list[str]:
        """Names of the outputs."""
        return [name for code in self.used for name in code.outputs]

    @property
    def coded(self) -> Tensor:
        return torch.tensor([flag for code in self.used for flag in code.coded], dtype=torch.bool)

    def transform(self, columns: Columns) -> Tensor:
        """``[N, outputs]`` float64. Columns are found by name; see :func:`check_names` for which must be there."""
        matrix = np.zeros((columns.num_rows, len(self.names)))
        place = 0
        for code in self.used:
            width = len(code.outputs)
            _encode(code, columns[code.name], matrix[:, place : place + width], self.missing)
            place += width
        return torch.from_numpy(matrix)

    def state(self) -> dict[str, Any]:
        return {"missing": self.missing, "codes": [asdict(code) for code in self.codes]}

    @classmethod
    def from_state(cls, values: Mapping[str, Any]) -> ColumnEncoder:
        codes = tuple(ColumnCode(**{**code, "categories": tuple(code["categories"])}) for code in values["codes"])
        return cls(codes, values["missing"])


def check_names(given: list[str], needed: list[str], optional: set[str]) -> None:
    """Refuse a table that lacks a column the model was trained on, or has one it was not."""
    there, wanted = set(given), set(needed)
    absent = [name for name in needed if name not in there]
    unknown = [name for name in given if name not in wanted and name not in optional]
    if absent:
        hint = f"; the model does not know {', '.join(map(repr, unknown[:5]))}" if unknown else ""
        raise DataError(f"column {absent[0]!r} is missing, and the model was trained with it{hint}")
    if unknown:
        raise DataError(
            f"column {unknown[0]!r} was not among the training columns; leave it out, or train again with it"
        )


def _fit_column(column: Column, forced: bool, missing: str) -> ColumnCode:
    if forced:
        column = column.as_category()
    elif column.problem is not None:
        raise DataError(f"{column.problem}; correct it, or name the column in categorical")
    absent = column.missing
    if absent.all():
        return ColumnCode(column.name, column.kind, dropped="it has no values")
    if absent.any() and missing == "error":
        raise DataError(
            f"column {column.name!r} has {int(absent.sum())} missing values, the first in row "
            f"{int(absent.argmax()) + 1}; fill them, or set missing to indicator or mean"
        )
    indicator = bool(absent.any()) and missing == "indicator"
    present = column.values[~absent]
    if column.kind != "category":
        fill = float(present.mean()) if column.kind == "number" else float(present.mean() >= 0.5)
        return ColumnCode(column.name, column.kind, fill, indicator=indicator)
    counts = np.bincount(present.astype(np.int64), minlength=len(column.categories))
    kept = [number for number, count in enumerate(counts) if count]
    if not forced and len(kept) > max(20, 0.5 * present.size):
        reason = f"{len(kept)} different values in {present.size} rows are names rather than categories"
        return ColumnCode(column.name, "category", dropped=f"{reason} (name it in categorical to use it all the same)")
    if len(kept) > _MAX_CATEGORIES:
        raise DataError(
            f"column {column.name!r} has {len(kept)} different values, more than {_MAX_CATEGORIES} categories; "
            "drop it (drop_columns), or group its values"
        )
    commonest = kept.index(int(counts.argmax()))
    return ColumnCode(
        column.name, "category", float(commonest), tuple(column.categories[number] for number in kept), indicator
    )


def _encode(code: ColumnCode, column: Column, out: Array, missing: str) -> None:
    """Write the columns that ``column`` becomes into ``out`` ``[N, outputs]``, which is zero."""
    absent = column.missing
    if absent.any() and missing == "error":
        raise DataError(
            f"column {code.name!r} has {int(absent.sum())} missing values, which the settings call an error"
        )
    if absent.any() and missing == "indicator" and not code.indicator:
        warnings.warn(
            f"column {code.name!r} has {int(absent.sum())} missing values and had none in training; the usual value is "
            "used instead",
            DataWarning,
            stacklevel=2,
        )
    if code.indicator:
        out[:, -1] = absent
    if code.kind == "category":
        _encode_category(code, column, out)
        return
    if column.kind == "category":
        stray = column.problem or f"got {column.categories[0]!r}"
        raise DataError(f"column {code.name!r} held {code.kind}s in training; {stray}")
    if column.problem is not None:
        raise DataError(column.problem)
    out[:, 0] = np.where(absent, code.fill, column.values)


def _encode_category(code: ColumnCode, column: Column, out: Array) -> None:
    place = {text: number for number, text in enumerate(code.categories)}
    if column.kind == "number":
        # Written 1.50 in one table and 1.5 in the next, it is the same category.
        place = {**place, **{_plain(text): number for text, number in place.items()}}
    texts = column.texts
    numbers = np.array([place.get(text, -1) if text else -2 for text in texts], dtype=np.int64)
    unknown = numbers == -1
    if unknown.any():
        example = texts[int(unknown.argmax())]
        warnings.warn(
            f"column {code.name!r} holds {int(unknown.sum())} values not seen in training, such as "
            f"{example[:40]!r}; they count as no category",
            DataWarning,
            stacklevel=2,
        )
    if not code.indicator:
        numbers[numbers == -2] = int(code.fill)
    rows = np.flatnonzero(numbers >= 0)
    out[rows, numbers[rows]] = 1


def _plain(text: str) -> str:
    from hgde.data.columns import number_text

    try:
        return number_text(float(text))
    except (ValueError, OverflowError):
        return text
