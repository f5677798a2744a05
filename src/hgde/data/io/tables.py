"""Tables as strings, read strictly: every row as long as the header, and every place known by line and column."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data.errors import DataError, unpacked_limit
from hgde.files import read_problem

Array = np.ndarray[Any, Any]

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_PARQUET = (".parquet", ".pq")
_PACKED = (".gz", ".zst")
_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
TABLE_SUFFIXES = (*_SEPARATORS, *_PARQUET)
_BITE = 1 << 10
_ROWS = 1 << 14


USUAL_NAMES = {
    "id": ("id", "node", "node_id"),
    "label": ("label", "class", "y"),
    "split": ("split", "part"),
    "source": ("source", "src", "from", "u"),
    "target": ("target", "dst", "to", "v"),
    "weight": ("weight",),
}
"""What columns of nodes and edges are called where nobody says, the first the most certain."""


def usual_column(columns: Iterable[str], role: str) -> str | None:
    """The column of a role by its most certain name, whatever its case: of ``x``, ``y`` and ``Label`` the last."""
    by_name = {column.lower(): column for column in reversed([*columns])}
    return next((by_name[name] for name in USUAL_NAMES[role] if name in by_name), None)


@dataclass(frozen=True, eq=False)
class Table:
    """A table of strings; text files give int64 where a column holds nothing but plain integers, frames also floats,
    booleans and times.

    ``line_of(row)`` is the line of the file a row stands on; ``unit`` is ``line`` for text and ``row`` otherwise.
    """

    path: Path
    columns: dict[str, Array]
    line_of: Callable[[int], int]
    unit: str = "line"

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def find(self, role: str, chosen: str | None) -> str | None:
        """The column called as chosen, else the one usually called so; see :data:`USUAL_NAMES`.

        Raises:
            DataError: if the chosen one is not there.
        """
        if chosen is not None:
            if chosen not in self.columns:
                names = ", ".join(self.columns)
                raise self.header_error(f"expected a column {chosen}, got {names}; choose one of these")
            return chosen
        return usual_column(self.columns, role)

    def place(self, row: int, column: str) -> str:
        """Words for a place of this table."""
        return f"{self.path}, {self.unit} {self.line_of(row)}, column {column}"

    def header_error(self, problem: str) -> DataError:
        """The error to raise about the column names."""
        return DataError.at(self.path, problem, line=1 if self.unit == "line" else None)

    def error(self, problem: str, row: int | None = None, column: str | None = None) -> DataError:
        """The error to raise about a place of this table."""
        line = None if row is None else self.line_of(row)
        return DataError.at(self.path, problem, line=line, column=column, unit=self.unit)


def read_table(path: Path, *, headerless: tuple[str, ...] | None = None, delimiter: str | None = None) -> Table:
    """Read a CSV, TSV or Parquet file, text also packed as ``.gz`` or ``.zst``.

    Args:
        path: the file; its ending says which.
        headerless: column names to use if the first line is numbers only, i.e. there is no header.
        delimiter: what separates cells, one character or ``tab``, ``space``; by default as the ending says.

    Raises:
        DataError: for a file that cannot be read, a row of the wrong length, a repeated or empty column name.
    """
    suffix = table_suffix(path)
    if suffix in _PARQUET:
        return _read_parquet(path)
    separator = _separator(path, delimiter)
    raw = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    _check_text(raw, path, separator)
    header = _header(raw, path, separator)
    first_row = 1
    if headerless is not None and all(name.lstrip("-").isdigit() for name in header):
        if len(header) < len(headerless):
            raise DataError.at(path, f"expected {len(headerless)} columns, got {len(header)}", line=1)
        header = [*headerless, *(f"column {n}" for n in range(len(headerless) + 1, len(header) + 1))]
        first_row = 0
    _check_names(header, path)
    if b'"' in raw:
        return _read_quoted(raw, path, separator, header, first_row)
    return _read_plain(raw, path, separator, header, first_row)


def _separator(path: Path, delimiter: str | None) -> str:
    suffix = table_suffix(path)
    if delimiter is None:
        if suffix not in _SEPARATORS:
            raise DataError.at(
                path,
                f"cannot tell the format from {suffix or 'no ending'!r}; use {', '.join(TABLE_SUFFIXES)}, or say what "
                "separates its cells (delimiter)",
            )
        return _SEPARATORS[suffix]
    separator = _NAMED_SEPARATORS.get(delimiter, delimiter)
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise DataError(f"cells are separated by one character, or by tab or space, got delimiter {delimiter!r}")
    return separator


def column_names(path: Path | str, delimiter: str | None = None) -> list[str]:
    """The names in the header of a table."""
    where = Path(path).expanduser()
    if table_suffix(where) in _PARQUET:
        return list(read_table(where).columns)
    raw = read_bytes(where).removeprefix(b"\xef\xbb\xbf")
    return _header(raw, where, _separator(where, delimiter))


def table_suffix(path: Path) -> str:
    """The ending that says what a file holds, that of its packing left out: ``.csv`` of ``edges.csv.gz``."""
    packed = path.suffix.lower() in _PACKED
    return (path.with_suffix("") if packed else path).suffix.lower()


def table_stem(path: Path) -> str:
    """A file's name without its endings: ``edges`` of ``edges.csv.gz``."""
    return path.with_suffix("").stem if path.suffix.lower() in _PACKED else path.stem


def _unpacked(raw: bytes, path: Path) -> bytes:
    """The content of a packed file; others as they are."""
    suffix = path.suffix.lower()
    limit = unpacked_limit(len(raw))
    if suffix == ".gz":
        try:
            content = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(limit + 1)
            if len(content) > limit:
                raise _too_large(path, limit)
            return content
        except (OSError, EOFError, zlib.error) as error:
            raise DataError.at(path, f"not a readable gzip file ({error})") from None
    if suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise DataError.at(path, "reading .zst needs zstandard: pip install 'hgde[files]'") from None
        try:
            return _unpack_frames(raw, path, limit, zstandard.ZstdDecompressor)
        except zstandard.ZstdError as error:
            raise DataError.at(path, f"not a readable zstd file ({error})") from None
    return raw


def _unpack_frames(raw: bytes, path: Path, limit: int, decompressor: Any) -> bytes:
    """The frames of a zstd file, one after the other. A frame need not say how large it is, so it is fed in bites: one
    of a KiB gives at most 32 MiB (256 blocks of 128 KiB)."""
    unpacked, total = [], 0
    view, place = memoryview(raw), 0
    while place < len(view):
        frame = decompressor().decompressobj()
        while not frame.eof:
            if place >= len(view):
                raise DataError.at(path, "not a readable zstd file (it breaks off)")
            unpacked.append(frame.decompress(view[place : place + _BITE]))
            place += _BITE
            total += len(unpacked[-1])
            if total > limit:
                raise _too_large(path, limit)
        place = min(place, len(view)) - len(frame.unused_data)
    return b"".join(unpacked)


def _too_large(path: Path, limit: int) -> DataError:
    return DataError.at(path, f"unpacks to more than {limit:,} bytes; unpack it yourself if it is meant to be so large")


def check_readable(path: Path) -> None:
    """Refuse what is not there, is no ordinary file, or is larger than this machine's memory."""
    try:
        problem = read_problem(path)
        with path.open("rb") if problem is None else nullcontext():
            pass
    except FileNotFoundError:
        raise DataError.at(path, "no such file; check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise DataError.at(path, f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if problem is not None:
        raise DataError.at(path, f"cannot be read: {problem}")


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked, that must not be empty."""
    check_readable(path)
    raw = _unpacked(path.read_bytes(), path)
    if not raw.strip():
        raise DataError.at(path, "the file is empty")
    return raw


def _check_text(raw: bytes, path: Path, separator: str) -> None:
    if b"\x00" in raw:
        raise _at_byte(raw, raw.index(b"\x00"), path, separator, "a NUL byte: this is not a text table")
    lone = raw.replace(b"\r\n", b"\n\n").find(b"\r")
    if lone >= 0:
        raise _at_byte(raw, lone, path, separator, "a carriage return inside a line; end lines with a newline")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _at_byte(raw, error.start, path, separator, "not UTF-8 text") from None


def _at_byte(raw: bytes, place: int, path: Path, separator: str, problem: str) -> DataError:
    before = raw[:place]
    start = before.rfind(b"\n") + 1
    return DataError.at(
        path, problem, line=before.count(b"\n") + 1, column=before[start:].count(separator.encode()) + 1
    )


def _header(raw: bytes, path: Path, separator: str) -> list[str]:
    first = raw.split(b"\n", 1)[0].decode("utf-8").rstrip("\r")
    if not first.strip():
        raise DataError.at(path, "expected column names, got an empty line", line=1)
    try:
        return [name.strip() for name in next(csv.reader([first], delimiter=separator, strict=True))]
    except csv.Error as error:
        raise DataError.at(path, f"column names cannot be read ({error})", line=1) from None


def _check_names(header: list[str], path: Path) -> None:
    seen: set[str] = set()
    for number, name in enumerate(header, start=1):
        if not name:
            raise DataError.at(path, "a column has no name", line=1, column=number)
        if name in seen:
            raise DataError.at(path, f"two columns are called {name!r}", line=1, column=number)
        seen.add(name)


def _read_plain(raw: bytes, path: Path, separator: str, header: list[str], first_row: int) -> Table:
    """A table without quotes: rows are checked by counting separators, then parsed in one go."""
    import pandas as pd

    if not raw.endswith(b"\n"):
        raw += b"\n"
    content = np.frombuffer(raw, dtype=np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    returns = content[np.maximum(ends - 1, 0)] == ord("\r")
    blank = ends - starts - (returns & (ends > starts)) == 0
    separators = np.flatnonzero(content == ord(separator))
    fields = np.searchsorted(separators, ends) - np.searchsorted(separators, starts) + 1
    wrong = np.flatnonzero((fields != len(header)) & ~blank)
    if wrong.size:
        line = int(wrong[0])
        raise DataError.at(path, f"expected {len(header)} fields, got {fields[line]}", line=line + 1)
    body = raw[ends[0] + 1 :] if first_row else raw
    lines = np.flatnonzero(~blank)[first_row:] + 1

    def line_of(row: int) -> int:
        return int(lines[row])

    if lines.size == 0:
        return Table(path, {name: np.zeros(0, dtype=object) for name in header}, line_of)
    options: dict[str, Any] = {"sep": separator, "header": None, "names": header, "quoting": csv.QUOTE_NONE}
    if _all_plain_integers(body, separator):
        with suppress(OverflowError, ValueError):  # a number beyond int64 is a name like any other
            numbers = pd.read_csv(io.BytesIO(body), dtype=np.int64, **options)
            return Table(path, _columns(numbers, header), line_of)
    # As objects the parser makes one Python string of each distinct text, however often an edge list repeats it.
    text = pd.read_csv(io.BytesIO(body), dtype=object, na_filter=False, **options)
    columns = _columns(text, header)
    if (separator != " " and b" " in body) or b"\r" in body or (separator != "\t" and b"\t" in body):
        columns = {name: np.array([cell.strip() for cell in cells], dtype=object) for name, cells in columns.items()}
    return Table(path, columns, line_of)


def _columns(frame: Any, header: list[str]) -> dict[str, Array]:
    if len(header) < 100:
        return {name: frame[name].to_numpy() for name in header}
    # pandas takes longer to hand out a column than a short one is worth.
    whole = frame.to_numpy()
    return {name: whole[:, place] for place, name in enumerate(header)}


def _all_plain_integers(body: bytes, separator: str) -> bool:
    """Whether there is nothing but non-negative integers as Python would print them, so that no id is changed."""
    mark = separator.encode()
    if body.translate(None, b"0123456789\r\n" + mark):
        return False
    lines = b"\n" + body
    if any(gap in lines for gap in (mark + mark, mark + b"\n", mark + b"\r", b"\n" + mark)):
        return False
    return re.search(b"[\n" + mark + b"]0[0-9]", lines) is None


def _read_quoted(raw: bytes, path: Path, separator: str, header: list[str], first_row: int) -> Table:
    reader = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    last = 0
    try:
        for fields in reader:
            line, last = last + 1, reader.line_num
            if not fields:
                continue
            if len(fields) != len(header):
                raise DataError.at(path, f"expected {len(header)} fields, got {len(fields)}", line=line)
            rows.append([field.strip() for field in fields])
            lines.append(line)
    except csv.Error as error:
        raise DataError.at(path, f"quotes do not match up ({error})", line=last + 1) from None
    body, lines = rows[first_row:], lines[first_row:]
    columns = {name: np.array([row[place] for row in body], dtype=object) for place, name in enumerate(header)}
    return Table(path, columns, lines.__getitem__)


def _read_parquet(path: Path) -> Table:
    check_readable(path)
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError.at(path, "reading Parquet needs pyarrow: pip install 'hgde[files]'") from None
    limit = unpacked_limit(path.stat().st_size)
    try:
        # Texts stay in a dictionary: one that is repeated a million times is then there once.
        with parquet.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
            kinds = {column.name: column.type for column in schema}
        claimed = sum(
            max(metadata.row_group(group).column(place).total_uncompressed_size,
                8 * metadata.row_group(group).column(place).num_values)
            for group in range(metadata.num_row_groups) for place in range(metadata.num_columns)
        )  # fmt: skip
        if max(claimed, 8 * metadata.num_rows) > limit:
            raise _too_large(path, limit)
        is_text = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_binary)
        texts = [name for name, kind in kinds.items() if any(check(kind) for check in is_text)]
        batches, total = [], 0
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(_ROWS):
                batches.append(batch)
                total += batch.nbytes
                if total > limit:
                    raise _too_large(path, limit)
        frame = pyarrow.Table.from_batches(batches, None if batches else schema).to_pandas()
    except DataError:
        raise
    except Exception as error:  # pyarrow raises its own types, and OSError, on damaged files
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise DataError.at(path, f"not a readable Parquet file ({reason})") from None
    return table_from_frame(frame, path, unit="row")


def table_from_frame(frame: Any, path: Path, unit: str = "row") -> Table:
    """A pandas DataFrame as a table. Numbers, booleans and times keep their type; other cells become text, missing ones
    empty."""
    header = [str(name).strip() for name in frame.columns]
    _check_names(header, path)
    columns = {name: cells_of(frame.iloc[:, place]) for place, name in enumerate(header)}
    return Table(path, columns, lambda row: row + 1, unit)


def cells_of(series: Any) -> Array:
    """The cells of a pandas column: int64, float64 (NaN: missing), bool, datetime64, or texts (empty: missing)."""
    kind = getattr(series.dtype, "kind", "O")
    missing = series.isna().to_numpy(dtype=bool)
    if kind in "iu" and not missing.any():
        return np.asarray(series.to_numpy(dtype=np.int64))
    if kind in "iuf":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "b" and not missing.any():
        return np.asarray(series.to_numpy(dtype=bool))
    if kind == "M":
        return np.asarray(series.dt.tz_localize(None).to_numpy(dtype="datetime64[ns]"))
    texts = np.array([_text(value) for value in series.tolist()], dtype=object)
    texts[missing] = ""
    return texts


def as_texts(cells: Array) -> Array:
    """Any cells as texts, missing ones empty: node names and labels are compared as they are written."""
    if cells.dtype.kind == "O":
        return cells
    if cells.dtype.kind == "f":
        return np.array(["" if np.isnan(value) else _text(value) for value in cells.tolist()], dtype=object)
    return np.array([_text(value) for value in cells.tolist()], dtype=object)


def _text(value: Any) -> str:
    """A cell as text; a whole number that a column with gaps turned into a float is printed as whole."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip()
