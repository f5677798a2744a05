"""Embeddings for other programs: Gephi and networkx (GraphML, GEXF), TensorBoard's projector (two TSV files)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hgde.report.contents import DiskView
from hgde.report.measures import class_name

Array = npt.NDArray[Any]

_GEPHI_SCALE = 1000.0  # Gephi draws nodes about ten units wide


def to_networkx(view: DiskView) -> Any:
    """A ``networkx.Graph`` with ``x``, ``y``, label, prediction and confidence of each node; needs networkx."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError('graph files need networkx; try pip install "hgde[files]"') from error
    graph = networkx.Graph()
    for i, (x, y) in enumerate(np.asarray(view.positions)[-1].tolist()):
        facts: dict[str, Any] = {"label": _xml_text(str(i) if view.ids is None else view.ids[i]), "x": x, "y": y}
        if view.labels is not None:
            facts["class"] = _xml_text(class_name(int(view.labels[i]), view.class_names))
        if view.predictions is not None:
            facts["prediction"] = _xml_text(class_name(int(view.predictions[i]), view.class_names))
        if view.confidences is not None:
            facts["confidence"] = float(view.confidences[i])
        graph.add_node(i, **facts)
    if view.edges is not None:
        graph.add_edges_from(np.asarray(view.edges).T.tolist())
    return graph


def write_graphml(view: DiskView, path: Path) -> None:
    """GraphML with the disk's coordinates as node attributes ``x`` and ``y``."""
    import networkx

    path.parent.mkdir(parents=True, exist_ok=True)
    networkx.write_graphml(to_networkx(view), path)


def write_gexf(view: DiskView, path: Path) -> None:
    """GEXF with positions that Gephi shows at once (scaled by a thousand) and the coordinates as attributes."""
    import networkx

    graph = to_networkx(view)
    for _, facts in graph.nodes(data=True):
        place = {"x": _GEPHI_SCALE * facts["x"], "y": _GEPHI_SCALE * facts["y"], "z": 0.0}
        facts["viz"] = {"position": place}
    path.parent.mkdir(parents=True, exist_ok=True)
    networkx.write_gexf(graph, path)


def write_projector(
    folder: Path,
    z: Array,
    *,
    ids: Sequence[str] | None = None,
    labels: Array | None = None,
    predictions: Array | None = None,
    class_names: Sequence[str] = (),
    name: str = "embedding",
) -> list[Path]:
    """Files of TensorBoard's projector: ``vectors.tsv``, ``metadata.tsv`` and ``projector_config.pbtxt``.

    ``z [N, d]`` in the coordinates the projector should see; tangent coordinates at the origin (``logmap0``) suit its
    Euclidean methods better than those of the ball. Open them with ``tensorboard --logdir FOLDER``, or load the two
    tables at the projector's page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vectors, metadata, config = (folder / part for part in ("vectors.tsv", "metadata.tsv", "projector_config.pbtxt"))
    np.savetxt(vectors, np.asarray(z), delimiter="\t", fmt="%.9g")
    columns: dict[str, list[str]] = {"id": [str(i) for i in range(len(z))] if ids is None else [str(i) for i in ids]}
    if labels is not None:
        columns["class"] = [class_name(int(k), class_names) for k in labels]
    if predictions is not None:
        columns["prediction"] = [class_name(int(k), class_names) for k in predictions]
    lines = ["\t".join(row) for row in zip(*(map(_one_cell, column) for column in columns.values()), strict=True)]
    # The projector takes a first line for names only where there are several columns.
    header = ["\t".join(columns)] if len(columns) > 1 else []
    metadata.write_text("\n".join([*header, *lines]) + "\n", encoding="utf-8", errors="replace")
    config.write_text(
        "embeddings {\n"
        f"  tensor_name: {json.dumps(name)}\n"
        f'  tensor_path: "{vectors.name}"\n'
        f'  metadata_path: "{metadata.name}"\n'
        "}\n",
        encoding="utf-8",
    )
    return [vectors, metadata, config]


def _one_cell(text: str) -> str:
    return " ".join(text.split()) or "-"


def _xml_text(text: str) -> str:
    """Text without the control characters that XML cannot hold."""
    return "".join(letter if letter.isprintable() or letter in "\t\n" else "\ufffd" for letter in text)
