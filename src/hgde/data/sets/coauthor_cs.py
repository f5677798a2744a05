"""Coauthor CS: computer scientists who wrote together."""

from __future__ import annotations

from hgde.data.sets._shchur import shchur
from hgde.data.spec import Expected, register

SPEC = register(
    shchur(
        name="coauthor_cs",
        title="computer scientists who wrote together",
        expected=Expected(18333, 81894, 6805, 15, 0.808, 1, 18333, 2.0, 0.330),
        alias="cs",
        files=(
            ("datasets/coauthor_cs.npz", 2800548, "7b7b51bf270d341f1c4231834c58a526bb04db003fd76a6d2f51ad7d252005ed"),
        ),
    )
)
