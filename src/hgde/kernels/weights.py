"""How the weight of an edge is stated, so that a kernel can work it out row by row without storing it per channel.

Edge order is that of :class:`hgde.graph.Graph` everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class EdgeWeights:
    """One number per edge, ``values [E]``; the general form, and what a diffusivity of one's own returns.

    ``origin [N]``, where given, is the weight of a virtual neighbour of each node at the origin.
    """

    values: Tensor
    origin: Tensor | None = None


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """Graph attention: ``mean over heads of softmax_j LeakyReLU(target_i + source_j)``, from node scores ``[N, H]``."""

    target: Tensor
    source: Tensor
    negative_slope: float = 0.2


@dataclass(frozen=True, eq=False)
class ChannelWeights:
    """A number per edge and channel, ``scale[i] * table[index[e]]``.

    ``table [K, d]`` has a row for each distinct value of the edge property, ``index [E]`` says which, and
    ``scale [N, d]`` normalises the rows. Nothing of size edges x width is stored.
    """

    table: Tensor
    index: Tensor
    scale: Tensor


LocalWeights = EdgeWeights | AttentionWeights | ChannelWeights
