"""The tables as data: which systems on which data under which protocol, and what was published.

Each ``NAME.toml`` here is a table. ``published.toml`` has the paper's figures, ``hgde.toml`` the settings it prints. A
table of kind ``peers`` brings its own figures, measured with the authors' code, and has only the cells they belong to.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hgde.experiments.stats import Place
from hgde.experiments.systems import PLUS, System, UnknownSystem, find_system, preset_of, settings_of
from hgde.experiments.work import Length
from hgde.models.base import MODELS
from hgde.pipeline.settings import make_settings
from hgde.sections import overlay
from hgde.tasks import TASKS
from hgde.tasks.baselines import BASELINES
from hgde.tasks.metrics import PAIRS

FOLDER = Path(__file__).parent
NAMES = ("nodes", "links", "depth", "hetero", "few-labels", "cost", "peers", "defaults", "curvature")
_SLOW = {
    "hgde-i": 6.0,
    "hgde-e": 4.0,
    "hgde-plain": 4.0,
    "hgcn-local": 8.0,
    "lgcn": 4.0,
    "dense-gat": 8.0,
    "blend": 6.0,
    "mlp": 0.5,
}
"""How much slower than a GCN, roughly; only the order of the cells follows from it."""
LONG_RUN = 60.0
SEEDS_OF_LONG_RUNS = 5
"""Where a run takes more than so many seconds, so many seeds per split are enough."""


class TableError(ValueError):
    """A table or a part of one that there is not; the message says which there are."""


@dataclass(frozen=True)
class Data:
    """A column of a table: data, task and splits."""

    key: str
    title: str
    settings: Mapping[str, Any]
    published: str | None = None
    protocols: tuple[str, ...] = ("clean",)
    splits: tuple[int, ...] = (0,)
    seeds: int = 1
    weight: float = 1.0
    depth: int | None = None
    longest_trial: Length | None = None
    longest_run: Length | None = None
    """In place of those of the table, for all systems alike."""
    searched_apart: bool = False
    """Whether each protocol has a search of its own in any case, because inputs differ between them."""
    without: tuple[str, ...] = ()
    """Systems of the table that are not run here; the page says so."""
    many_labels: bool = False
    """Whether a fifth of the nodes or more are labelled, so that other extras fit (:mod:`hgde.experiments.extras`)."""

    @property
    def task(self) -> str:
        chosen = self.settings.get("task", "nodes")
        return chosen if isinstance(chosen, str) else str(chosen.get("name", "nodes"))

    @property
    def name(self) -> str:
        return str(self.settings["data"]["name"])

    @property
    def places(self) -> list[Place]:
        return [(split, seed) for split in self.splits for seed in range(self.seeds)]


@dataclass(frozen=True)
class Cell:
    """One system on one column under one protocol."""

    table: str
    data: Data
    protocol: str
    system: System
    settings: Mapping[str, Any]
    published: tuple[float, float | None] | None
    by_default: Mapping[str, Any] = field(default_factory=dict)
    """What a user would get who sets nothing but what makes the cell what it is."""

    @property
    def path(self) -> str:
        """Where its records are, below ``results/``."""
        return f"{self.table}/{self.data.key}--{self.protocol}--{self.system.name}"

    @property
    def places(self) -> list[Place]:
        """Splits and seeds; what draws no random numbers is run once per split."""
        return self.data.places if self.system.is_trained else [(split, 0) for split in self.data.splits]

    def places_of_runs(self, seconds: float) -> list[Place]:
        """Those of runs that take so long: of long ones, the first few seeds of every split."""
        return [place for place in self.places if seconds <= LONG_RUN or place[1] < SEEDS_OF_LONG_RUNS]

    @property
    def cost(self) -> float:
        if not self.system.is_trained:
            return 0.01 * self.data.weight
        return self.data.weight * _SLOW.get(self.system.name, 2.0 if self.system.model == "hgde" else 1.0)


@dataclass(frozen=True)
class Table:
    """A table: its columns, its systems, and how much tuning each cell gets."""

    name: str
    title: str
    text: str
    kind: str
    trials: int
    folds: int
    data: tuple[Data, ...]
    systems: tuple[str, ...]
    link_systems: tuple[str, ...]
    own_systems: Mapping[str, Mapping[str, Any]]
    only_defaults: bool
    published: Mapping[str, Any] = field(default_factory=dict)
    longest_trial: Length | None = None
    longest_run: Length | None = None
    at_once: int | None = None
    """How many settings of the best so far a trial changes; None for all of them."""
    searched: str | None = None
    """The protocol under which settings are searched for, for all of them; by default each has a search of its own."""

    def cells(self, only: tuple[str, ...] = ()) -> list[Cell]:
        """All cells, or those that every one of the given words occurs in; systems that are not there are left out."""
        made = [cell for data in self.data for protocol in data.protocols for cell in self._of(data, protocol)]
        return [cell for cell in made if all(_matches(cell, word) for word in only)]

    def searched_as(self, cell: Cell) -> Cell:
        """The cell whose search settles the settings of this one."""
        if cell.data.searched_apart or self.searched in (None, cell.protocol):
            return cell
        if self.searched not in cell.data.protocols:
            return cell
        return next(other for other in self._of(cell.data, str(self.searched)) if other.system.name == cell.system.name)

    def longest_trial_of(self, data: Data) -> Length | None:
        return data.longest_trial or self.longest_trial

    def longest_run_of(self, data: Data) -> Length | None:
        return data.longest_run or self.longest_run

    def missing_systems(self) -> list[str]:
        """Systems that the table names and nothing answers to."""
        return [name for name in dict.fromkeys((*self.systems, *self.link_systems)) if self._system(name) is None]

    def _of(self, data: Data, protocol: str) -> Iterator[Cell]:
        kind = TASKS.get(data.task).kind
        for name in self.link_systems if kind == PAIRS and self.link_systems else self.systems:
            system = None if name in data.without else self._system(name)
            if system is None or (system.model is None and kind not in BASELINES.get(system.name).kinds):
                continue
            given = overlay(data.settings, {"data": {"protocol": protocol}, "run": {"threads": 1}})
            settings = self._settings(system, data, given)
            longest = self.longest_run_of(data)
            if system.is_trained and longest is not None:
                settings = _no_longer_than(settings, longest)
            published = self._published(name, data)
            if published is not None or self.kind != "peers":
                by_default = (
                    {}
                    if system.model is None
                    else settings_of(system, given, "", data.task, many_labels=data.many_labels)
                )
                yield Cell(self.name, data, protocol, system, settings, published, by_default)

    def _system(self, name: str) -> System | None:
        own = self.own_systems.get(name.removesuffix(PLUS))
        try:
            if own is None:
                return find_system(name)
            model = str(own["model"])
            MODELS.get(model)
            changes = overlay({"model": {"name": model}}, own.get("settings", {}))
            return System(name, model, changes, with_extras=name.endswith(PLUS))
        except (UnknownSystem, ValueError):
            return None

    def _settings(self, system: System, data: Data, given: Mapping[str, Any]) -> dict[str, Any]:
        if system.model is None:
            return dict(given)
        data_name = "" if self.only_defaults else data.name
        settings = preset_of(system.model, data_name, data.task)
        if system.model == "hgde" and not self.only_defaults:
            printed = _read("hgde").get(data.name.partition("_")[0].partition("-")[0], {})
            if printed:
                settings = overlay({**printed, "preset": "none"}, {"model": {"name": "hgde", **printed["model"]}})
        settings = overlay(overlay(settings, system.changes_for(data.task, many_labels=data.many_labels)), given)
        return settings if data.depth is None else _at_depth(system.model, settings, data.depth)

    def _published(self, name: str, data: Data) -> tuple[float, float | None] | None:
        row = self.own_systems.get(name, {}).get("published", name)
        columns = self.published.get("columns", ())
        if data.published is None or data.published not in columns or row not in self.published:
            return None
        figures = self.published[str(row)][list(columns).index(data.published)]
        if not figures:
            return None
        return float(figures[0]), float(figures[1]) if len(figures) > 1 else None


def _no_longer_than(settings: Mapping[str, Any], length: Length) -> dict[str, Any]:
    """The settings with at most so many epochs, and epochs without improvement; where presets are raced, theirs."""
    if settings.get("preset") == "auto":
        return dict(settings)
    return overlay(settings, {"training": length.within(make_settings(settings, lenient=True).training)})


def _matches(cell: Cell, word: str) -> bool:
    return word in (
        cell.data.key,
        cell.system.name,
        cell.protocol,
        cell.data.name,
        f"{cell.data.key}--{cell.system.name}",
    )


def _at_depth(model: str, settings: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """The settings at width 16 and some depth, by whichever name the model has for it."""
    declared = set(MODELS.get(model).Settings.__dataclass_fields__)
    deeper: dict[str, Any] = {"name": model, "width": 16}
    name = next((name for name in ("time", "layers", "hops", "depth") if name in declared), None)
    if name is not None:
        deeper[name] = float(depth) if name == "time" else depth
    return overlay(settings, {"model": deeper})


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def load_table(name: str) -> Table:
    """The table of that name."""
    if name not in NAMES:
        raise TableError(f"there is no table {name!r}; there are {', '.join(NAMES)}, and figures")
    content = _read(name)
    return make_table(name, content, content.get("authors") or _read("published").get(name, {}))


def make_table(name: str, content: Mapping[str, Any], published: Mapping[str, Any] | None = None) -> Table:
    """A table from the content of its file."""
    task = content.get("task", "nodes")
    columns = [_data(key, value, task) for key, value in content.get("data", {}).items()]
    for key, sweep in content.get("sweep", {}).items():
        columns += _swept(key, sweep)
    if content.get("generated"):
        columns += _generated({column.name for column in columns})
    return Table(
        name=name,
        title=content["title"],
        text=" ".join(content.get("text", "").split()),
        kind=content.get("kind", "scores"),
        trials=content.get("trials", 8),
        folds=content.get("folds", 1),
        data=tuple(columns),
        systems=tuple(content["systems"]),
        link_systems=tuple(content.get("link_systems", ())),
        own_systems=content.get("system", {}),
        only_defaults=content.get("presets") == "default",
        published=published or {},
        longest_trial=_length(content, "longest_trial"),
        longest_run=_length(content, "longest_run"),
        at_once=content.get("at_once"),
        searched=content.get("searched"),
    )


def _length(content: Mapping[str, Any], name: str) -> Length | None:
    value = content.get(name)
    return None if value is None else Length(value["epochs"], value["patience"])


def _data(key: str, value: Mapping[str, Any], task: str) -> Data:
    settings = overlay({"task": {"name": task}}, value["settings"])
    return Data(
        key, value.get("title", key), settings, value.get("published"), tuple(value.get("protocols", ("clean",))),
        tuple(value.get("splits", (0,))), value.get("seeds", 1), value.get("weight", 1.0), value.get("depth"),
        _length(value, "longest_trial"), _length(value, "longest_run"), value.get("searched_apart", False),
        tuple(value.get("without", ())), value.get("many_labels", False),
    )  # fmt: skip


def _swept(key: str, sweep: Mapping[str, Any]) -> list[Data]:
    """A column for every value of an option of a generated set, and every task."""
    columns = []
    for task in sweep["tasks"]:
        for value in sweep["values"]:
            suffix = "" if task == "nodes" else f"-{task}"
            data = {"name": sweep["data"], "options": [f"{sweep['option']}={value}"]}
            title = sweep["title"].format(value) + ("" if task == "nodes" else f", {task}")
            settings = {"data": data, "task": {"name": task}}
            many = task == "nodes"
            columns.append(
                Data(
                    f"{key}-{value}{suffix}",
                    title,
                    settings,
                    splits=tuple(range(5)),
                    weight=sweep["weight"],
                    many_labels=many,
                )
            )
    return columns


def _generated(taken: set[str]) -> list[Data]:
    """Every generated family of data sets, for nodes and links as it says."""
    from hgde.data import DATASETS

    columns = []
    for name, spec in DATASETS.items():
        if spec.kind != "generated" or name in taken:
            continue
        for task in spec.tasks:
            key, title = (name, spec.title) if task == "nodes" else (f"{name}-{task}", f"{spec.title}, {task}")
            settings = {"data": {"name": name}, "task": {"name": task}}
            columns.append(Data(key, title, settings, splits=tuple(range(5)), weight=1.0, many_labels=task == "nodes"))
    return columns
