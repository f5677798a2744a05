"""Tables on disk: CSV that any reader gets right, Parquet or NPZ; what they came from stands in a JSON file beside."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data import DataError
from hgde.files import write_atomically
from hgde.tasks import Table

SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")


def write_table(path: Path, table: Table, about: dict[str, Any]) -> Path:
    """Write the table, and ``about`` as ``NAME.json`` beside it; returns the path of the latter.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     beside = write_table(Path(folder) / "t.csv", {"id": np.array(["a"])}, {"made": "by hand"})
    ...     (Path(folder) / "t.csv").read_text().split(), beside.name
    (['id', 'a'], 't.json')
    """
    buffer = io.BytesIO()
    if path.suffix == ".npz":
        arrays: dict[str, Any] = {name: _plain(values) for name, values in table.items()}
        np.savez_compressed(buffer, **arrays)
    elif path.suffix == ".parquet":
        _write_parquet(buffer, table)
    elif path.suffix in (".csv", ".tsv"):
        import pandas as pd

        pd.DataFrame(table).to_csv(buffer, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    else:
        raise DataError(f"{path}: cannot tell the format from {path.suffix!r}; use {', '.join(SUFFIXES)}")
    write_atomically(path, buffer.getvalue())
    beside = path.with_suffix(".json")
    write_atomically(beside, (json.dumps(about, indent=2) + "\n").encode())
    return beside


def _plain(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values.astype(str) if values.dtype == object else values


def _write_parquet(buffer: io.BytesIO, table: Table) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError("writing Parquet needs pyarrow: pip install 'hgde[files]'") from None
    pq.write_table(pa.table({k: pa.array(v.tolist() if v.dtype.kind in "UO" else v) for k, v in table.items()}), buffer)
