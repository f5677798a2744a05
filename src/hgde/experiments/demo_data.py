"""The demonstration's taxonomy: made on the spot and written as the two tables that anyone would bring."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hgde.files import write_atomically

Array = np.ndarray[Any, Any]

BRANCHES = ("animals", "plants", "fungi", "minerals", "tools")
ROOT = "everything"


@dataclass(frozen=True)
class Taxonomy:
    """Entries in breadth-first order, the root first: ``parents [N]`` (-1 for the root), ``depths [N]``, ``branches
    [N]`` (-1 for the root), recorded attributes ``[N, A]`` of 0 and 1, and cross-references ``[2, M]``."""

    names: list[str]
    parents: Array
    depths: Array
    branches: Array
    attributes: Array
    references: Array

    def write(self, folder: Path) -> tuple[Path, Path]:
        """``taxonomy.csv`` (source,target) and ``entries.csv`` (id,label, then a column per attribute)."""
        names = self.names
        pairs = [(names[parent], name) for parent, name in zip(self.parents[1:], names[1:], strict=True)]
        pairs += [(names[a], names[b]) for a, b in self.references.T]
        columns = [f"has_{number:02d}" for number in range(self.attributes.shape[1])]
        labels = ["" if branch < 0 else BRANCHES[branch] for branch in self.branches]
        rows = [(name, label, *row) for name, label, row in zip(names, labels, self.attributes.tolist(), strict=True)]
        paths = folder / "taxonomy.csv", folder / "entries.csv"
        write_atomically(paths[0], _table(("source", "target"), pairs))
        write_atomically(paths[1], _table(("id", "label", *columns), rows))
        return paths


def make_taxonomy(
    size: int = 400, attributes: int = 48, recorded: float = 0.8, wrong: float = 0.02, references: float = 0.2,
    seed: int = 0,
) -> Taxonomy:  # fmt: skip
    """A tree of ``size`` entries below five branches.

    An entry inherits all attributes of the one above it and adds up to two of its own. An attribute is recorded with
    the chance ``recorded``, one that is not there with the chance ``wrong``. The share ``references`` of the entries
    also refers to some other entry, of any branch.

    >>> made = make_taxonomy(40)
    >>> made.names[:3], made.attributes.shape
    (['everything', 'animals', 'plants'], (40, 48))
    """
    random = np.random.RandomState(seed)
    parents, depths, branches = np.full(size, -1), np.zeros(size, dtype=np.int64), np.full(size, -1)
    has = np.zeros((size, attributes), dtype=bool)
    names, above, made = [ROOT], 0, 1
    while made < size:
        wanted = len(BRANCHES) if above == 0 else random.randint(1, 5)
        for number in range(min(wanted, size - made)):
            parents[made], depths[made] = above, depths[above] + 1
            branches[made] = number if above == 0 else branches[above]
            names.append(BRANCHES[number] if above == 0 else f"{names[above]}.{number + 1}")
            has[made] = has[above]
            has[made, random.randint(attributes, size=2)] = True
            made += 1
        above += 1
    seen = np.where(has, random.random_sample(has.shape) < recorded, random.random_sample(has.shape) < wrong)
    referring = np.flatnonzero(random.random_sample(size) < references)
    pairs = np.stack([referring, random.randint(1, size, referring.size)])
    pairs = pairs[:, (pairs[0] != pairs[1]) & (pairs[0] > 0)]
    return Taxonomy(names, parents, depths, branches, seen.astype(np.int64), pairs)


def _table(head: tuple[str, ...], rows: list[Any]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue().encode()
