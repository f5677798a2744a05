"""From stored columns to what a model is given: fitted on the training graph, kept with the run, matched by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.data.columns import Columns
from hgde.data.dataset import Dataset, RawFeatures
from hgde.data.encoding import ColumnEncoder, check_names
from hgde.data.errors import DataError, DataWarning
from hgde.data.io.npz import SPARSE_BELOW
from hgde.data.settings import PreprocessingSettings as PreprocessingSettings
from hgde.data.steps.base import STEPS, Inputs, Step
from hgde.data.steps.leading_rows import LeadingRows
from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph
from hgde.sections import SettingsError

_LARGE_OFFSET = 1e5


@dataclass(frozen=True)
class ColumnMatch:
    """Which of the columns of a table are used: all those it had when fitted, without the dropped ones.

    ``names`` is ``None`` for a matrix without, whose columns are then matched by their number.
    """

    names: tuple[str, ...] | None
    count: int
    dropped: tuple[int, ...]

    @property
    def kept(self) -> list[int]:
        gone = set(self.dropped)
        return [column for column in range(self.count) if column not in gone]

    @property
    def kept_names(self) -> list[str]:
        names = self.names or [str(number) for number in range(self.count)]
        return [names[column] for column in self.kept]

    def apply(self, dataset: Dataset) -> RawFeatures:
        """The kept columns of a data set, in the order of the training table."""
        features, names = dataset.features, dataset.column_names
        if self.names is not None and names is not None:
            optional = {self.names[column] for column in self.dropped}
            check_names(names, self.kept_names, optional)
            place = {name: number for number, name in enumerate(names)}
            wanted = [place[name] for name in self.kept_names]
        else:
            if features.shape[1] != self.count:
                hint = ""
                if dataset.meta.get("features") == "identity":
                    hint = " (one-hot node numbers describe the nodes of one graph only: give the nodes some columns)"
                raise DataError(f"there are {features.shape[1]} features, the model was trained on {self.count}{hint}")
            wanted = self.kept
        return _take(features, wanted)


class Preprocessor:
    """Fitted preprocessing: matching of columns, encoding, steps.

    Numbers, booleans and categories become one matrix (:mod:`hgde.data.encoding`), then the steps of the settings and
    the normalising step follow. Raw columns are worked on in float64; a matrix keeps its own type.

    >>> from hgde.data import Columns, Dataset
    >>> from hgde.graph import Graph
    >>> table = Columns.from_arrays({"age": [31.0, 45.0, 52.0], "colour": ["blue", "green", "blue"]})
    >>> people = Dataset("people", Graph.from_edges([(0, 1), (1, 2)]), table)
    >>> fitted = Preprocessor.fit(people)
    >>> fitted.output_names, fitted.transform(people).shape
    (['age', 'colour=blue', 'colour=green'], torch.Size([3, 3]))
    """

    def __init__(
        self,
        match: ColumnMatch,
        encoder: ColumnEncoder | None,
        sparse: bool,
        steps: list[tuple[str, Step]],
        output_names: list[str],
    ) -> None:
        self.match, self.encoder, self.sparse, self.steps = match, encoder, sparse, steps
        self.output_names = output_names

    @classmethod
    def fit(
        cls, dataset: Dataset, settings: PreprocessingSettings | None = None, graph: Graph | None = None
    ) -> Preprocessor:
        """Learn from the nodes of the training graph; labels are never looked at.

        Args:
            dataset: with the columns a task is given (:meth:`hgde.data.Dataset.inputs`).
            settings: of the preprocessing.
            graph: the graph messages pass on, for steps that look at it; default: the data set's.
        """
        settings = settings or PreprocessingSettings()
        names = dataset.column_names
        dropped = _dropped(dataset, settings.drop_columns)
        match = ColumnMatch(None if names is None else tuple(names), int(dataset.features.shape[1]), dropped)
        raw = match.apply(dataset)
        encoder, sparse = None, False
        if isinstance(raw, Columns):
            _check_categorical(settings.categorical, raw.names, dropped, names or [])
            encoder = ColumnEncoder.fit(raw, settings.categorical, settings.missing)
            left_out = {code.name for code in encoder.codes if code.dropped}
            more = [place for place in match.kept if names is not None and names[place] in left_out]
            match = replace(match, dropped=tuple(sorted((*match.dropped, *more))))
            sparse = raw.is_plain() and not settings.categorical and _is_sparse(raw)
        elif settings.categorical:
            raise SettingsError("categorical names columns of a table; these features are a matrix of numbers")
        fitted = cls(match, encoder, sparse, [], [])
        inputs = fitted._inputs(raw, graph or dataset.graph)
        if inputs.features.shape[1] == 0:
            raise DataError(f"{dataset.name}: no feature column is left; drop fewer, or give the nodes some columns")
        for name in settings.steps:
            inputs = fitted._add(name, STEPS.get(name).fit(inputs), inputs)
        name, step = _normalising(dataset, settings.normalise, match, inputs)
        if encoder is not None and name in ("none", "rows", "unit"):
            _warn_of_offsets(inputs)
        inputs = fitted._add(name, step, inputs)
        fitted.output_names = inputs.names
        return fitted

    def _add(self, name: str, step: Step, inputs: Inputs) -> Inputs:
        self.steps.append((name, step))
        return step.transform(inputs)

    @property
    def num_outputs(self) -> int:
        return len(self.output_names)

    @property
    def how(self) -> str:
        """The name of the normalising step."""
        return self.steps[-1][0]

    def transform(self, dataset: Dataset, graph: Graph | None = None) -> Features:
        """``[N, num_outputs]``, dense or sparse.

        Columns are matched by name whatever their order, those of a matrix without names by number.

        Raises:
            DataError: for a missing or unknown column, by name, or a cell that does not fit its column.
        """
        inputs = self._inputs(self.match.apply(dataset), graph or dataset.graph)
        for _, step in self.steps:
            inputs = step.transform(inputs)
        return inputs.features

    def _inputs(self, raw: RawFeatures, graph: Graph) -> Inputs:
        if self.encoder is None:
            if isinstance(raw, Columns):
                raw = _plain_matrix(raw)
            return Inputs(raw, self.match.kept_names, len(self.match.kept), graph=graph)
        if not isinstance(raw, Columns):
            raw = _named(raw, self.match.kept_names)
        encoded = self.encoder.transform(raw)
        matrix: Features = encoded
        coded = self.encoder.coded
        if self.sparse:
            from scipy.sparse import csr_matrix

            matrix = SparseFeatures.from_scipy(csr_matrix(encoded.numpy()), torch.float64)
        return Inputs(matrix, self.encoder.names, len(self.encoder.used), coded if bool(coded.any()) else None, graph)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values (JSON can hold them) and tensors, from which :meth:`from_state` makes the same again."""
        tensors: dict[str, Tensor] = {}
        steps = []
        for number, (name, step) in enumerate(self.steps):
            values, own = step.state()
            steps.append({"step": name, "values": values})
            tensors.update({f"steps.{number}.{key}": tensor for key, tensor in own.items()})
        names = None if self.match.names is None else list(self.match.names)
        plain = {
            "version": 1,
            "columns": {"names": names, "count": self.match.count, "dropped": list(self.match.dropped)},
            "encoder": None if self.encoder is None else self.encoder.state(),
            "sparse": self.sparse,
            "steps": steps,
            "output_names": self.output_names,
        }
        return plain, tensors

    @classmethod
    def from_state(cls, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Preprocessor:
        """What :meth:`state` described. Steps are looked up by name: see :func:`hgde.registry.untrusted`."""
        columns = values["columns"]
        names = None if columns["names"] is None else tuple(columns["names"])
        steps = []
        for number, stored in enumerate(values["steps"]):
            prefix = f"steps.{number}."
            own = {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}
            steps.append((stored["step"], STEPS.get(stored["step"]).from_state(stored["values"], own)))
        return cls(
            ColumnMatch(names, columns["count"], tuple(columns["dropped"])),
            None if values["encoder"] is None else ColumnEncoder.from_state(values["encoder"]),
            bool(values["sparse"]),
            steps,
            list(values["output_names"]),
        )


def _normalising(dataset: Dataset, how: str, match: ColumnMatch, inputs: Inputs) -> tuple[str, Step]:
    if how == "words":
        how = "rows" if isinstance(inputs.features, SparseFeatures) and dataset.scaling is None else "auto"
    if how == "auto" and dataset.scaling is not None:
        leading = sum(column < dataset.scaling.count for column in match.kept)
        return "leading_rows", LeadingRows(leading, dataset.scaling.signed)
    if how == "auto":
        how = "unit" if isinstance(inputs.features, SparseFeatures) else "columns"
    return how, STEPS.get(how).fit(inputs)


def _dropped(dataset: Dataset, wanted: tuple[str, ...]) -> tuple[int, ...]:
    """Places of the columns to leave out; a name counts before a number."""
    names, count = dataset.column_names, int(dataset.features.shape[1])
    gone = {str(column) for column in dataset.meta.get("dropped_columns", ())}
    places = set()
    known = {} if names is None else {name: number for number, name in enumerate(names)}
    for key in wanted:
        if key in known:
            places.add(known[key])
        elif key in gone:
            continue  # the data set's recipe leaves it out already
        elif key.isdecimal() and int(key) < count and not (names is not None and gone):
            places.add(int(key))
        else:
            listed = f"0 to {count - 1}" if names is None else ", ".join([*names[:20], "..."] if count > 20 else names)
            raise SettingsError(f"drop_columns names column {key}; {dataset.name} has the columns {listed}")
    return tuple(sorted(places))


def _check_categorical(wanted: tuple[str, ...], left: list[str], dropped: tuple[int, ...], names: list[str]) -> None:
    known = set(left)
    for name in wanted:
        if name not in known:
            listed = ", ".join([*left[:20], "..."] if len(left) > 20 else left)
            reason = "it is dropped" if name in [names[column] for column in dropped] else f"there are {listed}"
            raise SettingsError(f"categorical names column {name!r}; {reason}")


def _take(features: RawFeatures, wanted: list[int]) -> RawFeatures:
    if wanted == list(range(int(features.shape[1]))):
        return features
    if isinstance(features, Columns):
        columns = list(features.values())
        return Columns([columns[place] for place in wanted], features.num_rows)
    if isinstance(features, SparseFeatures):
        return SparseFeatures.from_scipy(features.to_scipy()[:, wanted], features.dtype)
    return features[:, torch.tensor(wanted, dtype=torch.int64)]


def _named(matrix: Features, names: list[str]) -> Columns:
    """A matrix without names where a table was trained on: its columns in the same order."""
    dense = matrix.to_dense() if isinstance(matrix, SparseFeatures) else matrix
    values = dense.double().cpu().numpy()
    return Columns.from_arrays({name: values[:, place] for place, name in enumerate(names)})


def _plain_matrix(columns: Columns) -> Tensor:
    """A table of numbers where a matrix was trained on."""
    for column in columns.values():
        if column.kind == "category" or column.problem or bool(column.missing.any()):
            raise DataError(
                f"column {column.name!r} must hold a number in every row: the model was trained on a matrix"
            )
    return torch.from_numpy(columns.to_matrix())


def _is_sparse(columns: Columns) -> bool:
    matrix = columns.to_matrix()
    return bool(np.count_nonzero(matrix) < SPARSE_BELOW * matrix.size)


def _warn_of_offsets(inputs: Inputs) -> None:
    if isinstance(inputs.features, SparseFeatures):
        return
    mean, spread = inputs.features.mean(0), inputs.features.std(0, correction=0)
    lost = ((spread > 0) & (mean.abs() > _LARGE_OFFSET * spread)).nonzero().flatten()
    if lost.numel():
        warnings.warn(
            f"column {inputs.names[int(lost[0])]!r} is far from zero for its spread, and float32 loses what varies; "
            "normalise columns, or subtract its mean",
            DataWarning,
            stacklevel=3,
        )
