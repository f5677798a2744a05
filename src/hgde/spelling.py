"""What a misspelt name was probably meant to be."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable

_LONGEST = 60
"""Names are short; what is longer is no name, and comparing it would take long."""


def closest(word: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name that is most like a word, if any is; of those equally alike, one with the same letters.

    >>> closest("gnc", ["sgc", "gcn", "gat"])
    'gcn'
    >>> closest("lerning_rate", ["width", "learning_rate"])
    'learning_rate'
    >>> closest("nothing", ["gcn"]) is None
    True
    """
    word = word[:_LONGEST]
    near = difflib.get_close_matches(word, list(known), n=3, cutoff=cutoff)
    return max(near, key=lambda name: (_likeness(word, name), _shared(word, name)), default=None)


def _likeness(word: str, name: str) -> float:
    return difflib.SequenceMatcher(None, name, word).ratio()


def _shared(word: str, name: str) -> int:
    return (Counter(word) & Counter(name)).total()
