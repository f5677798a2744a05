"""A view of the disk as JSON with binary arrays inside, small enough for a page.

An array is ``{"type": "f4", "shape": [...], "data": base64, "deflate": bool}``, little-endian and compressed with zlib
where that helps. 100,000 nodes at eight times with 300,000 edges take about 12 MB.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hgde.report.contents import DiskView, EnergyCurve, NodeWeights

Array = npt.NDArray[Any]

# In double precision while that is cheap: what is drawn near the boundary, and moved to the middle, needs the digits.
_MOST_BYTES_IN_DOUBLE = 4_000_000
_MOST_BYTES_OF_POSITIONS = 9_000_000


def explorer_payload(view: DiskView, title: str = "Embedding", energy: EnergyCurve | None = None) -> dict[str, Any]:
    """What the explorer reads, ready for ``json.dumps``.

    Positions are kept in double precision up to about 250,000 points (nodes times diffusion times), in single
    precision beyond; where even that is too much for a page, times are thinned evenly, the first and last kept.

    >>> import numpy as np
    >>> from hgde.report.contents import DiskView
    >>> view = DiskView(np.array([[[0.1, 0.2], [-0.5, 0.3]]]))
    >>> explorer_payload(view, "two nodes")["title"]
    'two nodes'
    """
    positions, times = _thinned(view)
    count = positions.shape[1]
    double = positions.size * 8 <= _MOST_BYTES_IN_DOUBLE
    return {
        "version": 1,
        "title": title,
        "count": count,
        "times": [float(t) for t in times],
        "positions": _pack(positions.astype("<f8" if double else "<f4")),
        "edges": None if view.edges is None else _pack(np.ascontiguousarray(view.edges.T).astype("<u4")),
        "ids": _pack_ids(view.ids, count),
        "classes": list(view.class_names),
        "labels": _pack_optional(view.labels, "<i4"),
        "predictions": _pack_optional(view.predictions, "<i4"),
        "confidences": _pack_optional(view.confidences, "<f4"),
        "degrees": _pack_optional(view.degrees, "<u4"),
        "local": _pack_weights(view.local_weights),
        "global": _pack_weights(view.global_weights),
        "energy": None if energy is None else _energy(energy),
    }


def json_for_script(value: Any) -> str:
    """JSON that is inert inside ``<script type="application/json">``: no ``<`` can close or open an element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _thinned(view: DiskView) -> tuple[Array, Sequence[float]]:
    positions = np.asarray(view.positions, dtype=np.float64)
    each = positions.shape[1] * 2 * 4
    most = max(2, _MOST_BYTES_OF_POSITIONS // max(each, 1))
    if len(positions) <= most:
        return positions, view.times
    kept = np.unique(np.linspace(0, len(positions) - 1, most).round().astype(int))
    return positions[kept], [view.times[k] for k in kept]


def _pack(array: Array) -> dict[str, Any]:
    raw = np.ascontiguousarray(array).tobytes()
    packed = zlib.compress(raw, 6)
    smaller = len(packed) < 0.9 * len(raw)
    return {
        "type": array.dtype.str[1:] if array.dtype.itemsize > 1 else "u1",
        "shape": list(array.shape),
        "data": base64.b64encode(packed if smaller else raw).decode("ascii"),
        "deflate": smaller,
    }


def _pack_optional(array: Array | None, dtype: str) -> dict[str, Any] | None:
    return None if array is None else _pack(np.asarray(array).astype(dtype))


def _pack_ids(ids: Sequence[str] | None, count: int) -> dict[str, Any]:
    if ids is None or all(name == str(i) for i, name in enumerate(ids)):
        return {"kind": "range"}
    # A lone surrogate has no form in UTF-8; it is shown as a question mark.
    text = json.dumps(list(ids), ensure_ascii=False).encode("utf-8", "replace")
    return {"kind": "text", "text": _pack(np.frombuffer(text, dtype=np.uint8)), "count": count}


def _pack_weights(weights: NodeWeights | None) -> dict[str, Any] | None:
    if weights is None:
        return None
    nodes = np.asarray(weights.nodes)
    return {
        "width": int(nodes.shape[1]),
        "nodes": _pack(nodes.astype("<i4")),
        "values": _pack(np.asarray(weights.values).astype("<f4")),
    }


def _energy(energy: EnergyCurve) -> dict[str, Any]:
    curves = [{"name": name, "values": [float(v) for v in values]} for name, values in energy.curves.items()]
    return {"times": [float(t) for t in energy.times], "curves": curves}
