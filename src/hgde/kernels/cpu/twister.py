"""The Mersenne twister of torch's generator, and the chances that torch draws from it: the same bits, several at once.

The state is 624 words. Drawing one tempers the next of them; when all are used up they are worked out anew, each from
three others. A chance is a number of 53 bits made of two words: the low 21 bits of the first above the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hgde.compiler.dialect import Double, Doubles, Int, Ints, Reals, Wholes, inlined, kernel

WORDS, AHEAD = 624, 397
#: Where torch's generator has what, in words of 32 bits: how many draws are left and one more, the next, the state.
LEFT, NEXT, STATE = 2, 4, 6


@inlined
def word(array: Any, at: int) -> Any:
    return np.uint32(array[at])


@inlined
def renewed(own: Any, following: Any, ahead: Any) -> Any:
    mixed = (own & 0x80000000) | (following & 0x7FFFFFFF)
    return ahead ^ (mixed >> 1) ^ (-(mixed & 1) & 0x9908B0DF)


@inlined
def tempered(y: Any) -> Any:
    y = y ^ (y >> 11)
    y = y ^ ((y << 7) & 0x9D2C5680)
    y = y ^ ((y << 15) & 0xEFC60000)
    return y ^ (y >> 18)


@inlined
def renew(words: Any) -> None:
    """The next 624 words, in place."""
    for k in range(WORDS - AHEAD):
        words[k] = renewed(word(words, k), word(words, k + 1), word(words, k + AHEAD))
    for k in range(WORDS - AHEAD, WORDS - 1):
        words[k] = renewed(word(words, k), word(words, k + 1), word(words, k + AHEAD - WORDS))
    last = WORDS - 1
    words[last] = renewed(word(words, last), word(words, 0), word(words, AHEAD - 1))


@kernel
def keep(
    s: Doubles, state: Ints, words: Ints, drawn: Ints, pairs: Wholes, count: Int, bound: Int, scale: Double, out: Reals
) -> None:
    """``out_i = scale`` where the next chance is below ``bound / 2^53``, else 0; the generator's state moves on.

    ``words [624]`` and ``drawn [626]``, which ``pairs`` has two by two, are buffers.
    """
    # torch keeps a word in 64 bits.
    for k in range(WORDS):
        words[k] = state[STATE + 2 * k]
    used = WORDS + 1 - state[LEFT]
    held, done = 0, 0
    while done < count:
        if used == WORDS:
            renew(words)
            used = 0
        wanted = min(WORDS - used, 2 * (count - done) - held)
        for k in range(wanted):
            drawn[held + k] = tempered(word(words, used + k))
        used += wanted
        held += wanted
        both = held // 2
        for k in range(both):
            chance = ((pairs[k] & 0x1FFFFF) << 32) | (pairs[k] >> 32)
            out[done + k] = scale if chance < bound else 0.0
        done += both
        # The first word of a pair whose second is not yet worked out.
        drawn[0] = drawn[2 * both]
        held -= 2 * both
    for k in range(WORDS):
        state[STATE + 2 * k] = words[k]
    state[NEXT] = used
    state[LEFT] = WORDS + 1 - used
