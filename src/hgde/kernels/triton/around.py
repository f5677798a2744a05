"""All neighbours of each node with its edges in both directions: the order in which the backward pass gathers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary


@dataclass(frozen=True, eq=False)
class Around:
    """CSR ``start [N + 1], neighbours [P]``; ``arriving, leaving [P]`` are the places of the edge from and to the
    neighbour among the graph's edges, -1 where there is none. Equal numbers of parallel edges are paired.
    """

    start: Tensor
    neighbours: Tensor
    arriving: Tensor
    leaving: Tensor


_known: WeakIdKeyDictionary = WeakIdKeyDictionary()


def around(indptr: Tensor, indices: Tensor) -> Around:
    """The neighbours of every node, on the graph's device; remembered as long as the graph's ``indices`` live."""
    found: tuple[int, Around] | None = _known.get(indices)
    if found is None or found[0] != indices._version:
        found = _known[indices] = (indices._version, _work_out(indptr.detach(), indices.detach()))
    return found[1]


def _work_out(indptr: Tensor, indices: Tensor) -> Around:
    nodes, edges = indptr.numel() - 1, indices.numel()
    rows = torch.repeat_interleave(torch.arange(nodes, device=indices.device), indptr.diff())
    place = torch.arange(edges, device=indices.device)
    arriving_key, leaving_key = rows * nodes + indices, indices * nodes + rows
    names = torch.stack([torch.cat([arriving_key, leaving_key]), torch.cat([_copy(arriving_key), _copy(leaving_key)])])
    pairs, own = torch.unique(names, dim=1, return_inverse=True)
    arriving, leaving = (torch.full((pairs.shape[1],), -1, device=indices.device) for _ in range(2))
    arriving[own[:edges]] = place
    leaving[own[edges:]] = place
    start = torch.zeros(nodes + 1, dtype=torch.int64, device=indices.device)
    start[1:] = torch.bincount(pairs[0] // max(nodes, 1), minlength=nodes).cumsum(0)
    return Around(*(part.to(torch.int32) for part in (start, pairs[0] % max(nodes, 1), arriving, leaving)))


def _copy(keys: Tensor) -> Tensor:
    """How many equal keys stand before each."""
    ordered, order = torch.sort(keys, stable=True)
    position = torch.arange(keys.numel(), device=keys.device)
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    first = torch.cummax(torch.where(is_first, position, 0), 0).values if keys.numel() else position
    copies = torch.empty_like(position)
    copies[order] = position - first
    return copies
