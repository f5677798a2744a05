"""Tables of predictions and embeddings, written with what they came from."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hgde.data import Dataset
from hgde.data.errors import DataError
from hgde.graph import Features, Graph
from hgde.training.checkpoint import write_atomically
from hgde.training.prepare import make_task, with_inputs
from hgde.training.run import TrainedModel

Array = np.ndarray[Any, Any]
Table = dict[str, Array]


def model_inputs(trained: TrainedModel, dataset: Dataset) -> tuple[Features, Graph]:
    """What the model is given for a data set: on its own data, exactly what it was trained with."""
    settings = trained.settings
    if settings.task == "links" and dataset.hash == trained.meta["data_hash"]:
        task = make_task(dataset, settings)
        return task.features.to(getattr(torch, settings.dtype)), task.graph
    inputs = with_inputs(dataset, settings, dataset.graph, trained.scaling)
    if inputs.num_features != trained.meta["in_features"]:
        raise DataError(
            f"{dataset.name} has {inputs.num_features} features, the model was trained on {trained.meta['in_features']}"
        )
    graph = dataset.graph.with_self_loops() if settings.self_loops else dataset.graph
    return inputs.features.to(getattr(torch, settings.dtype)), graph


def node_ids(dataset: Dataset) -> Array:
    return np.array(dataset.ids) if dataset.ids is not None else np.arange(dataset.num_nodes)


@torch.no_grad()
def predict_nodes(trained: TrainedModel, dataset: Dataset) -> Table:
    """A row per node: id, predicted class, probability of each class."""
    probabilities = torch.softmax(trained.model(*model_inputs(trained, dataset)), -1)
    names = trained.meta["class_names"] or [str(k) for k in range(probabilities.shape[1])]
    table = {"id": node_ids(dataset), "label": np.array(names)[probabilities.argmax(-1).numpy()]}
    return table | {f"p_{name}": probabilities[:, k].numpy() for k, name in enumerate(names)}


@torch.no_grad()
def predict_links(trained: TrainedModel, dataset: Dataset, pairs_file: Path) -> Table:
    """A row per pair of the file: source, target, probability of a link."""
    import pandas as pd

    pairs = pd.read_csv(pairs_file, dtype=str)
    if pairs.shape[1] < 2:
        raise DataError(f"{pairs_file} needs two columns (source,target), it has {pairs.shape[1]}")
    position = {str(name): number for number, name in enumerate(node_ids(dataset).tolist())}
    numbers = []
    for column in pairs.columns[:2]:
        found = pairs[column].map(position)
        if found.isna().any():
            row = int(found.isna().to_numpy().argmax())
            raise DataError(f"{pairs_file} line {row + 2}, column {column}: no node is called {pairs[column][row]!r}")
        numbers.append(torch.from_numpy(found.to_numpy(dtype=np.int64, copy=True)))
    z = trained.model.embed(*model_inputs(trained, dataset))
    probability = torch.sigmoid(trained.model.score_pairs(z, torch.stack(numbers)))
    return {
        "source": pairs.iloc[:, 0].to_numpy(dtype=str),
        "target": pairs.iloc[:, 1].to_numpy(dtype=str),
        "probability": probability.numpy(),
    }


@torch.no_grad()
def embed_nodes(trained: TrainedModel, dataset: Dataset) -> tuple[Tensor, Table]:
    """The points ``[N, d]``, and a table with a row per node: id, then coordinates."""
    z = trained.model.embed(*model_inputs(trained, dataset))
    return z, {"id": node_ids(dataset)} | {f"z{k}": z[:, k].numpy() for k in range(z.shape[1])}


def write_table(path: Path, table: Table, header: dict[str, Any]) -> None:
    """Write as .csv (header in ``#`` comment lines), .parquet (in its metadata) or .npz (array ``header``)."""
    told = json.dumps(header)
    buffer = io.BytesIO()
    if path.suffix == ".npz":
        arrays: dict[str, Any] = {"header": np.array(told)} | {k: _plain(v) for k, v in table.items()}
        np.savez_compressed(buffer, **arrays)
    elif path.suffix == ".parquet":
        _write_parquet(buffer, table, told)
    elif path.suffix in (".csv", ".tsv"):
        import pandas as pd

        buffer.write(f"# {told}\n".encode())
        pd.DataFrame(table).to_csv(buffer, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    else:
        raise DataError(f"{path}: cannot tell the format from {path.suffix!r}; use .csv, .tsv, .parquet or .npz")
    write_atomically(path, buffer.getvalue())


def _plain(values: Array) -> Array:
    return values.astype(str) if values.dtype == object else values


def _write_parquet(buffer: io.BytesIO, table: Table, told: str) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError("writing Parquet needs pyarrow: pip install 'hgde[files]'") from None
    content = pa.table({k: pa.array(v.tolist() if v.dtype.kind in "UO" else v) for k, v in table.items()})
    pq.write_table(content.replace_schema_metadata({"hgde": told}), buffer)
