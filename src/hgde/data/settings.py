"""Settings of the data and of how columns become inputs; light to import, they load nothing."""

from __future__ import annotations

from dataclasses import dataclass

from hgde.registry import RegistryError
from hgde.sections import Section, SettingsError, setting


def _only_with_edges(settings: DataSettings) -> str | None:
    return None if settings.edges is not None else "it describes a graph of your own, and no edges are given"


def _only_with_nodes(settings: DataSettings) -> str | None:
    if settings.edges is None:
        return _only_with_edges(settings)
    holds_nodes = settings.nodes is not None or _unpacked_name(settings.edges).endswith((".graphml", ".xml"))
    return None if holds_nodes else "it describes a table of nodes, and none is given"


def _unpacked_name(path: str) -> str:
    return path.lower().removesuffix(".gz").removesuffix(".zst")


def _only_registered(settings: DataSettings) -> str | None:
    return None if settings.edges is None else "your own graph is read instead (edges is given); name one or the other"


def _only_with_files(settings: DataSettings) -> str | None:
    if settings.edges is not None:
        return _only_registered(settings)
    kind = _registered_kind(settings)
    return f"the data set {settings.name} is simulated" if kind in ("generated", "builtin") else None


def _registered_kind(settings: DataSettings) -> str | None:
    from hgde.data.errors import DataError
    from hgde.data.spec import find_spec

    try:
        return find_spec(settings.name).kind
    except (DataError, RegistryError):
        return None  # whoever opens it will say so


def _only_without_edges_of_its_own(settings: DataSettings) -> str | None:
    if settings.edges is not None:
        return None if settings.edges.lower().endswith(".npz") else "your own graph has its edges"
    return f"the data set {settings.name} has a graph" if _registered_kind(settings) in ("graph", "generated") else None


@dataclass(frozen=True)
class DataSettings(Section):
    """Which data, and which of its splits.

    >>> DataSettings(edges="edges.csv", nodes="nodes.csv", label_column="species").label_column
    'species'
    """

    name: str = setting(
        "disease-sim", "Name of a registered data set (`hgde data list`).", flag="data", inert=_only_registered
    )
    options: tuple[str, ...] = setting(
        (),
        "Options of a simulated data set, such as num_nodes=500,seed=3.",
        flag="data_options",
        inert=_only_registered,
    )
    edges: str | None = setting(None, "Your own graph: a table of edges (source,target), or a file with the graph.")
    nodes: str | None = setting(
        None, "Your own graph: a table of nodes (id,label, then features).", inert=_only_with_edges
    )
    root: str | None = setting(
        None, "Folder with data files (default: $HGDE_DATA, then the cache).", flag="data_root", inert=_only_with_files
    )
    protocol: str = setting(
        "clean",
        "Split: the literature's with its faults (published), or one without leaks (clean).",
        choices=("clean", "published"),
    )
    split: int = setting(
        0, "Number of the split if the data set has several fixed ones, else its seed.", at_least=0, below=2**32
    )
    largest_component: bool = setting(False, "Keep only the largest connected component.")
    neighbours: int = setting(
        5,
        "Number of neighbours, including the node itself, of the graph built for data without edges.",
        above=0,
        inert=_only_without_edges_of_its_own,
    )
    directed: bool = setting(False, "Let messages travel along the direction of an edge only.", inert=_only_with_edges)
    id_column: str | None = setting(None, "Column of node names (default: id).", inert=_only_with_nodes)
    label_column: str | None = setting(
        None, "Column of labels, or several as a,b,c (default: label).", inert=_only_with_nodes
    )
    split_column: str | None = setting(
        None, "Column that says train, val or test (default: split).", inert=_only_with_nodes
    )
    source_column: str | None = setting(None, "Column of edge sources (default: source).", inert=_only_with_edges)
    target_column: str | None = setting(None, "Column of edge targets (default: target).", inert=_only_with_edges)
    weight_column: str | None = setting(None, "Column of edge weights (default: weight).", inert=_only_with_edges)
    delimiter: str | None = setting(
        None, "Separator of cells in text tables (default: by the file's extension).", inert=_only_with_edges
    )

    def for_files(self, edges: str, nodes: str | None = None) -> DataSettings:
        """These settings for another graph in files of the same form, as a trained model is given one.

        Labels and parts of a split need not be there, and all nodes are kept.
        """
        labels, split = (self.label_column, self.split_column) if nodes is not None else (None, None)
        if nodes is not None and (labels is not None or split is not None):
            from hgde.data.io.tables import column_names

            there = column_names(nodes, self.delimiter)
            labels = ",".join(label for label in (labels or "").split(",") if label.strip() in there) or None
            split = split if split in there else None
        return DataSettings(
            edges=edges,
            nodes=nodes,
            protocol=self.protocol,
            split=self.split,
            directed=self.directed,
            id_column=None if nodes is None else self.id_column,
            label_column=labels,
            split_column=split,
            source_column=self.source_column,
            target_column=self.target_column,
            weight_column=self.weight_column,
            delimiter=self.delimiter,
        )

    def check(self) -> None:
        for option in self.options:
            if "=" not in option:
                raise SettingsError(f"options are given as NAME=VALUE, got {option!r}")


@dataclass(frozen=True)
class PreprocessingSettings(Section):
    """How columns become the numbers a model is given; fitted on the training graph and kept with the run.

    >>> PreprocessingSettings(normalise="rows", drop_columns=("age",)).normalise
    'rows'
    """

    normalise: str = setting(
        "auto",
        "Features as they are (none), rows divided by their sum (rows) or their length (unit), columns to mean 0 and "
        "deviation 1 (columns), or another preprocessing step (auto: unit if sparse, else columns; words: rows if "
        "sparse, as published for bags of words, else as auto).",
    )
    drop_columns: tuple[str, ...] = setting((), "Feature columns to leave out, by name or number, such as 3 or age,10.")
    categorical: tuple[str, ...] = setting((), "Numeric columns to treat as categories.")
    missing: str = setting(
        "indicator",
        "Missing values: the mean (or most common value) and a column that marks them (indicator), no such column "
        "(mean), or an error.",
        choices=("indicator", "mean", "error"),
    )
    steps: tuple[str, ...] = setting((), "Further preprocessing steps before normalising, by name.")
