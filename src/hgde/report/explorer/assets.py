"""The explorer's script and style as text."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

# One scope, in the order of use: the pieces are joined into one module, so there is nothing to build or to load.
PIECES = (
    "disk.js",
    "data.js",
    "colours.js",
    "raster.js",
    "webgl.js",
    "panel.js",
    "controls.js",
    "scene.js",
    "explorer.js",
    "mount.js",
)


@cache
def explorer_script() -> str:
    """The JavaScript module; it mounts itself where a page asks for it and exports ``render`` for anywidget.

    >>> "hgdeExplorer" in explorer_script()
    True
    """
    folder = files("hgde.report.explorer")
    return "\n".join((folder / piece).read_text(encoding="utf-8") for piece in PIECES)


@cache
def explorer_style() -> str:
    """The style sheet, for light and dark.

    >>> ".hgde-stage" in explorer_style()
    True
    """
    return (files("hgde.report.explorer") / "explorer.css").read_text(encoding="utf-8")
