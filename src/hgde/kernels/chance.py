"""Dropout with the numbers that torch would draw, several times as fast.

torch's Bernoulli draws take the numbers of its generator one by one, which costs more than the layer that is dropped
from. :mod:`hgde.kernels.cpu.twister` works them out side by side: the same masks, and the generator is left in the same
state. Where torch draws otherwise (its builds for Intel's processors do), torch draws.
"""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from hgde import randomness
from hgde.geometry.numerics import is_eager
from hgde.kernels.cpu import pages
from hgde.kernels.cpu.threads import LoneCall, lent
from hgde.kernels.cpu.twister import WORDS
from hgde.kernels.dispatch import use_fused

FEWEST = 2_000
"""Of fewer entries torch has drawn before the kernel is called."""


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """:func:`hgde.randomness.dropout`, bit for bit.

    >>> import torch
    >>> from hgde import randomness
    >>> x = torch.ones(100)
    >>> with randomness.use(randomness.make_generator(0)):
    ...     expected = randomness.dropout(x, 0.3)
    >>> with randomness.use(randomness.make_generator(0)):
    ...     torch.equal(dropout(x, 0.3), expected)
    True
    """
    if not training or p == 0 or x.numel() == 0:
        return x
    source = randomness.generator()
    return randomness.dropout(x, p) if source is None else x * keep_mask(x, p, source)


def keep_mask(x: Tensor, p: float, source: torch.Generator) -> Tensor:
    """:func:`hgde.randomness.keep_mask`, bit for bit: ``1 / (1 - p)`` where an entry is kept, else 0; like ``x``."""
    if x.numel() < FEWEST or not (is_eager() and source.device.type == "cpu" and 0 <= p < 1 and use_fused("auto", x)):
        return randomness.keep_mask(x, p, source)
    return _mask(x, p, source) if _draws_alike() else randomness.keep_mask(x, p, source)


def _mask(x: Tensor, p: float, source: torch.Generator) -> Tensor:
    state = source.get_state()
    words, drawn = lent("twister", WORDS, torch.int32), lent("chances", WORDS + 2, torch.int32)
    out = pages.empty_like(x)
    bound = math.ceil((1 - p) * 2**53)
    args = (state, words, drawn, drawn, out.numel(), bound, _kept(p, x.dtype), out)
    LoneCall("twister.keep", x.dtype, 0, args)()
    source.set_state(state)
    return out


@cache
def _kept(p: float, dtype: torch.dtype) -> float:
    """What a kept entry is multiplied by, rounded as torch does."""
    return float(torch.ones((), dtype=dtype).div_(1 - p))


@cache
def _draws_alike() -> bool:
    """Whether torch draws on this machine as the kernel does; more than it works out at once are compared."""
    x = torch.empty(WORDS)
    one, other = randomness.make_generator(1), randomness.make_generator(1)
    alike = torch.equal(_mask(x, 0.5, one), randomness.keep_mask(x, 0.5, other))
    return alike and torch.equal(one.get_state(), other.get_state())
