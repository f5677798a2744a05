"""Tables read in chunks, and names of nodes turned into numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data import DataError
from hgde.data.io.tables import usual_column

Array = np.ndarray[Any, Any]
CHUNK = 2_000_000


class ChunkedTable:
    """A CSV, TSV or Parquet file whose rows are read so many at a time."""

    def __init__(self, path: str | Path, chunk: int = CHUNK) -> None:
        self.path, self.chunk = Path(path), chunk
        if not self.path.is_file():
            raise DataError(f"{self.path} does not exist")
        self.is_parquet = self.path.suffix == ".parquet"
        self.separator = "\t" if ".tsv" in self.path.suffixes else ","
        self.columns = self._columns()

    def _columns(self) -> list[str]:
        if self.is_parquet:
            return [str(name) for name in self._parquet().schema_arrow.names]
        import pandas as pd

        try:
            return [str(name) for name in pd.read_csv(self.path, sep=self.separator, nrows=0).columns]
        except (ValueError, UnicodeDecodeError) as error:
            raise DataError(f"{self.path} cannot be read: {error}") from None

    def _parquet(self) -> Any:
        try:
            import pyarrow.parquet as pq
        except ImportError:
            raise DataError("reading Parquet needs pyarrow: pip install 'hgde[files]'") from None
        return pq.ParquetFile(self.path)

    def find(self, role: str, chosen: str | None, place: int | None = None) -> str | None:
        """The column of a name given by the user, or by habit, or by its place."""
        if chosen is not None:
            if chosen not in self.columns:
                raise DataError(f"{self.path} has no column {chosen!r}; there are {', '.join(self.columns[:20])}")
            return chosen
        found = usual_column(self.columns, role)
        if found is None and place is not None and place < len(self.columns):
            return self.columns[place]
        return found

    def chunks(self, columns: Sequence[str], text: Sequence[str] = ()) -> Iterator[dict[str, Array]]:
        """Arrays of some columns, chunk by chunk; those in ``text`` as texts whatever they hold."""
        if self.is_parquet:
            for batch in self._parquet().iter_batches(self.chunk, columns=list(columns)):
                frame = batch.to_pandas()
                yield {name: _texts(frame[name]) if name in text else frame[name].to_numpy() for name in columns}
            return
        import pandas as pd

        kinds = dict.fromkeys(text, str)
        try:
            frames = pd.read_csv(
                self.path, sep=self.separator, usecols=list(columns), dtype=kinds, chunksize=self.chunk, na_filter=True
            )
            for frame in frames:
                yield {name: _texts(frame[name]) if name in text else frame[name].to_numpy() for name in columns}
        except (ValueError, UnicodeDecodeError) as error:
            raise DataError(f"{self.path} cannot be read: {error}") from None


def _texts(column: Any) -> Array:
    """Texts, empty ones where there is nothing."""
    texts: Array = np.asarray(column.astype(object).where(column.notna(), "").astype(str), dtype=object)
    return texts


@dataclass
class Names:
    """Numbers of nodes by their names, in the order of their first appearance.

    Sixteen bytes for each node: two hashes of 64 bits of its name, which stand for it. The names themselves are handed
    back when they are new, to be written to disk. Two names with the same 128 bits are not to be expected in the
    lifetime of the universe.
    """

    count: int = 0
    _first: Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    _second: Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    _number: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, names: Array) -> tuple[Array, Array]:
        """Numbers of all names, and the new names among them in the order of their numbers."""
        import pandas as pd

        codes, unique = pd.factorize(names)
        first, second = _hashes(unique)
        number = self._look(first, second)
        new = np.flatnonzero(number < 0)
        number[new] = self.count + np.arange(len(new))
        self.count += len(new)
        order = new[np.argsort(first[new], kind="stable")]
        at = np.searchsorted(self._first, first[order])
        self._first = np.insert(self._first, at, first[order])
        self._second = np.insert(self._second, at, second[order])
        self._number = np.insert(self._number, at, number[order])
        return number[codes], np.asarray(unique)[new]

    def numbers(self, names: Array) -> Array:
        """Numbers of names that are known; -1 for others."""
        import pandas as pd

        codes, unique = pd.factorize(names)
        return self._look(*_hashes(unique))[codes]

    def _look(self, first: Array, second: Array) -> Array:
        if len(self._first) == 0:
            return np.full(len(first), -1)
        at = np.searchsorted(self._first, first).clip(max=len(self._first) - 1)
        same = (self._first[at] == first) & (self._second[at] == second)
        if bool(((self._first[at] == first) & ~same).any()):
            raise DataError("two names of nodes have the same hash of 64 bits; rename one of them")
        return np.where(same, self._number[at], -1)


def _hashes(names: Any) -> tuple[Array, Array]:
    from pandas.util import hash_array

    values = np.asarray(names, dtype=object)
    one, two = (hash_array(values, hash_key=key, categorize=False) for key in ("hgde-names-one-0", "hgde-names-two-0"))
    return one, two
