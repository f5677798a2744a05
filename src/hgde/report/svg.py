"""Matplotlib figures as SVG elements inside a page, and as files beside it."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from hgde.report.figures import INK, STYLE


def inline_svg(text: str, name: str, words: str) -> str:
    """The ``<svg>`` element of a drawn figure.

    It scales with its column, takes the colour of the text around it, and is read out as ``words``.
    Every id begins with ``name``, so that several figures can share a page; nothing but the element is left.
    """
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = text.replace(INK, "currentColor")
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'((?:xlink:)?href="#|url\(#)', rf"\g<1>{name}-", text)
    opening = re.match(r"<svg[^>]*>", text)
    assert opening is not None, "matplotlib wrote no svg element"
    box = re.search(r'viewBox="([^"]*)"', opening.group())
    assert box is not None, "matplotlib wrote no viewBox"
    width = float(box.group(1).split()[2])
    label = words.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    begin = (
        f'<svg viewBox="{box.group(1)}" role="img" aria-label="{label}" class="plot" '
        f'style="max-width: {width * 4 / 3:.0f}px; stroke-linejoin: round" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return begin + text[opening.end() :]


def write_figures(figures: Mapping[str, Figure], drawn: Mapping[str, str], folder: Path) -> list[Path]:
    """Each figure as ``name.svg`` (its text is ``drawn``) and ``name.png`` on white paper; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures.items():
        vector = folder / f"{name}.svg"
        vector.write_text(drawn[name], encoding="utf-8")
        raster = folder / f"{name}.png"
        with rc_context(STYLE):
            figure.savefig(raster, dpi=160, facecolor="white")
        written += [vector, raster]
    return written


def svg_text(figure: Figure) -> str:
    """The figure as the text of an SVG file; the slow part of a page."""
    stream = io.StringIO()
    with rc_context(STYLE):
        figure.savefig(stream, format="svg", dpi=160, metadata={"Date": None, "Creator": None})
    return stream.getvalue()
