"""Sizes that the compiled passes and their callers agree on."""

from __future__ import annotations

from hgde.compiler.haste import is_hasty

STRIP = 32
"""Most rows worked on together."""
CHUNK = 64
"""Edges worked on together."""
ROW_SCALARS, EDGE_SCALARS = 52, 17
"""Scalars kept for each row of a strip and each edge of a chunk."""
BUFFERS = ROW_SCALARS * STRIP + EDGE_SCALARS * CHUNK
"""Where the matrices of a strip begin in the scratch: one place for all passes, which then share building blocks."""
PARTIALS, PROJECTED = 8, 4
"""Numbers a block of rows sums up: gradients of ``c`` and of the three ``eta``, and at place 4 the points projected."""
IDENTITY, RELU, LEAKY_RELU, TANH, ELU = range(5)
"""Activations."""


def strip_rows(width: int) -> int:
    """Rows of a strip: few enough that its matrices stay in the fastest cache."""
    return 32 if width <= 16 else (16 if width <= 64 else 8)


def pairs_together(width: int) -> int:
    """Edges worked on together where point and gradient of a neighbour are read, twice: few enough to stay in cache."""
    return CHUNK if width <= 16 else (32 if width <= 32 else 16)


WIDTHS, MADE_FOR_WIDTHS = (8, 16, 32, 64), ("trajectories", "attentive", "programs")
"""Widths for which the kernels of some modules are made apart: others share one kernel for all."""


def at_width(kernel: str, width: int) -> str:
    """The name of the kernel to call for points of a width, padded or not."""
    padded = (width + 7) // 8 * 8
    is_apart = padded in WIDTHS and kernel.startswith(MADE_FOR_WIDTHS) and not is_hasty()
    return f"{kernel}@{padded}" if is_apart else kernel


def scratch(width: int, edges: int = 0) -> int:
    """Doubles of buffer that a pass over rows or edges of this width needs: scalars, seven strips, two numbers each of
    a strip's ``edges``."""
    return BUFFERS + 7 * STRIP * width + 2 * edges


LINE = 16
"""Words of 32 bits in a cache line, which no two counters share."""


EXP, LOG, TRANSLATE = range(3)
"""Maps at the origin."""

TILE, STRIP_OF_TILE = 64, 32
"""Columns of a tile of pairs, and rows worked on together."""


def pairs_scratch(heads: int) -> int:
    """Numbers of buffer that a pass over all pairs needs: of columns, and of strips."""
    return 12 * TILE + (5 + 2 * heads) * TILE * STRIP_OF_TILE


LINK_SCALARS = 8
"""Scalars kept for each pair of a chunk when links are decoded."""

ENCODER_BUFFERS = 20 * STRIP + CHUNK
"""Where the matrices of a strip begin when features are encoded: after two sets of scalars and a chunk of entries."""


def encoder_scratch(width: int) -> int:
    """Doubles of buffer that the encoder needs."""
    return ENCODER_BUFFERS + 2 * STRIP * width


DECODER_SCALARS = 10 * STRIP
"""Where matrices begin when points are decoded: after the scalars of the maps."""


def decoder_scratch(width: int, outputs: int) -> int:
    """Doubles of buffer that the decoder needs."""
    return DECODER_SCALARS + (width + 1) * outputs + STRIP * (2 * outputs + width)


ADD_UP, EXPONENTIAL, LOGARITHM, TRANSPORT, SHRINK = range(5)
"""Row maps of a plan."""
PHASE_FORWARD, MAP_FORWARD, PHASE_BACKWARD, MAP_BACKWARD = 4, 8, 6, 16
"""Whole numbers by which a plan states each phase and each row map."""
