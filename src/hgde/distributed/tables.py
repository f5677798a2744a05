"""Tables that are written a piece at a time, so that no process ever holds a whole one."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from hgde.data import DataError
from hgde.files import write_atomically
from hgde.tasks import Table

SUFFIXES = (".parquet", ".csv", ".tsv")


class StreamedTable:
    """A Parquet file (a row group for each piece) or a text table that takes its place when it is complete."""

    def __init__(self, path: Path) -> None:
        if path.suffix not in SUFFIXES:
            raise DataError(f"{path}: predictions on a partition are written to {', '.join(SUFFIXES)}")
        self.path, self.rows = path, 0
        self.temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer: Any = None
        self._columns: list[str] | None = None

    def append(self, table: Table) -> None:
        if not table or len(next(iter(table.values()))) == 0:
            return
        self.rows += len(next(iter(table.values())))
        if self.path.suffix == ".parquet":
            self._append_parquet(table)
        else:
            import pandas as pd

            separator = "\t" if self.path.suffix == ".tsv" else ","
            first = self._columns is None
            self._columns = list(table)
            pd.DataFrame(table).to_csv(self.temporary, mode="a", header=first, index=False, sep=separator)

    def _append_parquet(self, table: Table) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise DataError("writing Parquet needs pyarrow: pip install 'hgde[files]'") from None
        group = pa.table({k: pa.array(v.tolist() if v.dtype.kind in "UO" else v) for k, v in table.items()})
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.temporary, group.schema)
        self._writer.write_table(group)

    def finish(self, about: dict[str, Any]) -> None:
        """Put the table, and ``NAME.json`` about it, in their places."""
        if self._writer is not None:
            self._writer.close()
        if self.rows == 0:
            raise DataError(f"there is nothing to write to {self.path}")
        os.replace(self.temporary, self.path)
        write_atomically(self.path.with_suffix(".json"), (json.dumps(about, indent=2) + "\n").encode())

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self.temporary.unlink(missing_ok=True)
