"""Names of a package that are imported when first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, given which module each of its names lives in."""
    home_of = {name: home for home, names in homes.items() for name in names}
    names = sorted(home_of)

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home_of[name]), name)

    def everything() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return find, everything, names
