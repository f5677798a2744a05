"""Ollivier–Ricci curvature of a graph's edges: exact, parallel, and worked out once per graph."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hgde.compiler.load import function
from hgde.files import cache_folder, sweep
from hgde.graph.graph import Graph
from hgde.graph.measures.kernels.states import NO_MEMORY, STOP
from hgde.progress import bar

_LOG = logging.getLogger(__name__)
_VERSION = 1
_PROGRESS_ABOVE = 20_000_000


def ollivier_ricci(
    graph: Graph,
    alpha: float = 0.5,
    cache_dir: str | Path | None = None,
    progress: bool = True,
    cache: bool = False,
) -> Tensor:
    """``K(u, v) = 1 - W1(m_u, m_v)`` for every edge of the graph, ``[E]`` in its order, float64.

    ``m_u`` keeps mass ``alpha`` at ``u`` and spreads the rest evenly over its neighbours; distances are shortest paths
    (paper, Ollivier–Ricci curvature). The graph is taken as undirected, simple and without weights: direction and
    repetition of an edge do not matter, loops get 0. Exact: only the two neighbourhoods of an edge are looked at, the
    mass they share is cancelled, and the rest, at distances 1 to 3, is a small transport problem solved to the end.

    Args:
        alpha: mass that stays at a node, ``0 <= alpha <= 1``.
        cache_dir: folder of stored results, named by the graph's hash and ``alpha``; implies ``cache``. By default
            :func:`hgde.files.cache_folder`.
        progress: show a progress bar when the work takes more than a few seconds.
        cache: read and write stored results. For a graph that will be met again; one that lives for an epoch, such as
            a graph with some edges hidden, would only fill the disk.

    >>> import torch
    >>> from hgde import Graph
    >>> triangle = Graph.from_edges(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3)
    >>> ollivier_ricci(triangle, alpha=0.0).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is the share of mass that stays at a node, between 0 and 1, got {alpha}")
    path = None
    if cache or cache_dir is not None:
        path = _path(graph, alpha, cache_folder() if cache_dir is None else Path(cache_dir))
    if path is not None:
        stored = _load(path, graph.num_edges)
        if stored is not None:
            return stored.to(graph.device)
    pairs = graph.undirected_edges.cpu()
    values = _curvatures(pairs, graph.num_nodes, alpha, progress)
    pair = graph.undirected_index.cpu()
    result = torch.zeros(graph.num_edges, dtype=torch.float64)
    result[pair >= 0] = values[pair[pair >= 0]]
    if path is not None:
        _store(path, result)
    return result.to(graph.device)


def _path(graph: Graph, alpha: float, folder: Path) -> Path:
    return folder / "ricci" / f"{graph.unweighted().hash[:32]}-alpha{alpha!r}-v{_VERSION}.npz"


def _curvatures(pairs: Tensor, num_nodes: int, alpha: float, progress: bool) -> Tensor:
    count = pairs.shape[1]
    if alpha == 1 or count == 0:
        # All mass stays at the ends, one step apart.
        return torch.zeros(count, dtype=torch.float64)
    kernel = function("transport.curvatures", "float64")
    simple = Graph.from_edges(pairs, num_nodes)
    indptr, indices = simple.indptr.numpy(), simple.indices.numpy().astype(np.int32)
    ends = np.ascontiguousarray(pairs.numpy())
    degree = simple.degree.numpy()
    work = degree[ends[0]] * degree[ends[1]]
    # The longest first, dealt out in small parts: no thread is left with a hub at the end.
    order = np.argsort(-work, kind="stable")
    num_parts = max(1, min(256, count // 64))
    parts = [np.ascontiguousarray(order[k::num_parts]) for k in range(num_parts)]
    out, state = np.empty(count), np.zeros(2, dtype=np.int32)
    most = int(degree.max()) + 2  # the neighbours, and both ends
    total = int(work.sum())
    with (
        ThreadPoolExecutor(max(1, torch.get_num_threads())) as pool,
        bar("Ollivier–Ricci curvature", len(parts), quiet=not progress or total <= _PROGRESS_ABOVE) as advance,
    ):
        try:
            for _ in pool.map(
                lambda part: kernel.call(
                    part.size, part, count, ends, num_nodes, indptr, indices, float(alpha), most, out, state
                ),
                parts,
            ):
                advance()
        except BaseException:  # Ctrl-C: threads end at their next edge, what has not begun is not begun
            state[STOP] = 1
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if state[NO_MEMORY]:
        raise MemoryError("not enough memory for the transport between the neighbourhoods of two hubs")
    return torch.from_numpy(out)


def _load(path: Path, expected: int) -> Tensor | None:
    """A stored result; a file that is none is set aside, so that it can be looked at and is not met again."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            values = stored["curvature"]
        if values.shape == (expected,) and values.dtype == np.float64 and bool(np.isfinite(values).all()):
            return torch.from_numpy(values)
        problem = f"{values.dtype} of shape {list(values.shape)}"
    except FileNotFoundError:
        return None
    except Exception as error:  # damaged archives raise whatever zlib, zipfile and numpy happen to meet first
        problem = str(error) or type(error).__name__
    with contextlib.suppress(OSError):
        os.replace(path, path.with_name(f"{path.name}.damaged"))
    _LOG.warning("%s holds no curvatures (%s); it was set aside, and they are worked out anew", path, problem)
    return None


def _store(path: Path, values: Tensor) -> None:
    """Write beside the target and rename, so that a reader never sees half a file; a read-only folder is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent, "*.npz.part")
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".npz.part")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, curvature=values.numpy())
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
