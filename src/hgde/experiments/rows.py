"""Rows of the published tables, each a small settings file: what was published, and how we run it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from hgde.settings import Settings, SettingsError, from_dict, reject_unknown

TABLES = {
    "nodes": "Node classification",
    "links": "Link prediction",
    "depth": "Depth: T = 4, 8, 12, 16",
    "hetero": "Heterophilic graphs, ten fixed splits",
    "few-labels": "Few labels, graph built from features",
    "best": "Our own best, beyond the paper's settings",
}


class RowError(ValueError):
    """A row file that cannot be used."""


@dataclass(frozen=True)
class Row:
    """One row of a table.

    A column is a reading of the row: ``published`` follows the literature's protocol, ``clean`` has no leak, others are
    what the paper leaves open. Each column overrides some settings. Where the literature's protocol has no leak
    (``leak_free``), ``published`` is clean as well.
    """

    table: str
    key: str
    title: str
    note: str
    published: tuple[float, float] | None
    vary: str
    runs: int
    settings: dict[str, Any]
    columns: dict[str, dict[str, Any]]
    leak_free: bool = False

    def settings_of(self, column: str, run: int) -> Settings:
        """The settings of run ``run`` of a column; the seed or the number of the split is what varies."""
        merged = {**self.settings, **self.columns[column]}
        if self.vary == "split":
            merged["split"] = run
        merged["seed"] = run
        return from_dict(merged)


def folder_of_rows() -> Path:
    return Path(str(files("hgde.experiments") / "rows"))


def read_rows(table: str | None = None, folder: Path | None = None) -> list[Row]:
    """All rows of a table (or of all tables), in the order of their file names."""
    if table is not None and table not in TABLES:
        raise RowError(f"unknown table {table!r}; there are {', '.join(TABLES)} and all")
    folder = folder or folder_of_rows()
    tables = [table] if table is not None else list(TABLES)
    return [read_row(path, name) for name in tables for path in sorted((folder / name).glob("*.toml"))]


def read_row(path: Path, table: str) -> Row:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        published = content.get("published")
        row = Row(
            table=table,
            key=path.stem,
            title=content["title"],
            note=content.get("note", ""),
            published=(published["mean"], published["std"]) if published else None,
            vary=content.get("vary", "seed"),
            runs=content.get("runs", 10),
            settings=content["settings"],
            columns=content.get("columns", {"published": {}}),
            leak_free=content.get("leak_free", False),
        )
        for overrides in (row.settings, *row.columns.values()):
            reject_unknown(overrides, "setting")
        for column in row.columns:
            row.settings_of(column, 0)
    except (KeyError, SettingsError) as error:
        raise RowError(f"{path}: {error}") from None
    return row
