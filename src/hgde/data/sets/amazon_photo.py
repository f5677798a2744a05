"""Amazon Photo: photo goods bought together."""

from __future__ import annotations

from hgde.data.sets._shchur import shchur
from hgde.data.spec import Expected, register

SPEC = register(
    shchur(
        name="amazon_photo",
        title="photo goods bought together",
        expected=Expected(7650, 119081, 745, 8, 0.827, 136, 7487, 2.0, 0.267),
        alias="photo",
        files=(
            ("datasets/amazon_photo.npz", 1772672, "bdb98b54cd3125bfa69b23ba0aae84fabcb770c6727175b8f6eb1d64f3be4b2b"),
        ),
    )
)
