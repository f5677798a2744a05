"""A report as one HTML file that needs nothing else, and the same as Markdown and JSON.

>>> from hgde.report.contents import RunReport
>>> render_html(RunReport(title="Karate <club>")).count("Karate &lt;club&gt;") > 0
True
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from hgde.files import write_atomically
from hgde.report.contents import ComparisonReport, DiskView, EnergyCurve, Report, RunReport, TuningReport
from hgde.report.explorer import explorer_payload, explorer_script, explorer_style
from hgde.report.explorer.payload import json_for_script
from hgde.report.figures import make_figures
from hgde.report.svg import inline_svg, svg_text, write_figures

FIGURE_WORDS = {
    "losses": "Training and validation loss per epoch",
    "score": "Validation score per epoch",
    "curvature": "Curvature per epoch, and points projected back into the ball, where there were any",
    "confusion": "Confusion matrix: true class by row, predicted class by column",
    "calibration": "Accuracy against confidence",
    "values": "Predicted against true values",
    "energy": "Dirichlet energy along the diffusion",
    "embedding": "Embedding in the Poincaré disk",
    "systems": "Mean and spread of each system",
    "trials": "Score of each trial and the best so far",
    "importances": "Importance of each setting",
}


@dataclass(frozen=True)
class ReportFiles:
    """Where a report was written."""

    html: Path
    markdown: Path
    json: Path
    figures: Sequence[Path]


def render_html(report: Report) -> str:
    """The page: styles, figures, data and scripts inside, no address to load anything from."""
    return _html(report, _drawn(make_figures(report)))


def _drawn(figures: Mapping[str, Figure]) -> dict[str, str]:
    return {name: svg_text(figure) for name, figure in figures.items()}


def _html(report: Report, drawn: Mapping[str, str]) -> str:
    figures = {name: Markup(inline_svg(text, name, FIGURE_WORDS[name])) for name, text in drawn.items()}
    return _render(f"{_kind(report)}.html.j2", report, figures=figures, words=FIGURE_WORDS)


def render_explorer(title: str, view: DiskView, energy: EnergyCurve | None = None) -> str:
    """The explorer as a page of its own."""
    return _render("explorer.html.j2", RunReport(title, disk=view, energy=energy))


def _render(template: str, report: Report, **more: Any) -> str:
    explorer = None
    if isinstance(report, RunReport) and report.disk is not None and len(report.disk.positions[0]):
        explorer = Markup(json_for_script(explorer_payload(report.disk, report.title, report.energy)))
    text = (
        _environment()
        .get_template(template)
        .render(
            report=_cleaned(report),
            explorer=explorer,
            explorer_script=Markup(explorer_script()),
            explorer_style=Markup(explorer_style()),
            **more,
        )
    )
    return text + "\n"


def render_markdown(report: Report) -> str:
    """The same in Markdown, figures by the names under which :func:`write_report` puts them in ``figures/``."""
    return _markdown(report, list(make_figures(report)))


def _markdown(report: Report, figures: Sequence[str]) -> str:
    template = _environment().get_template(f"{_kind(report)}.md.j2")
    text = template.render(report=_cleaned(report), figures=figures, words=FIGURE_WORDS)
    lines = [line.rstrip() for line in text.splitlines()]
    # Parts that are missing leave blank lines behind.
    kept = [line for k, line in enumerate(lines) if line or (k and lines[k - 1])]
    return "\n".join(kept).strip() + "\n"


def render_json(report: Report) -> str:
    """The same for programs: every field, arrays as lists, numbers that are not finite as null."""
    content = {"kind": _kind(report), **_jsonable(report)}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_report(
    report: Report, folder: Path, name: str = "report", forms: Sequence[str] = ("html", "md", "json", "figures")
) -> ReportFiles:
    """``name.html``, ``name.md``, ``name.json``, and figures as SVG and PNG in ``figures/``, to which Markdown refers.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from hgde.report.contents import Trial, TuningReport
    >>> report = TuningReport("widths", [Trial(0, {"width": 8}, 0.8), Trial(1, {"width": 16}, 0.9)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(report, Path(folder), forms=("md",)).markdown.name
    'report.md'
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures = make_figures(report) if {"html", "md", "figures"} & set(forms) else {}
    drawn = _drawn(figures)
    files = ReportFiles(
        folder / f"{name}.html",
        folder / f"{name}.md",
        folder / f"{name}.json",
        write_figures(figures, drawn, folder / "figures") if {"md", "figures"} & set(forms) else [],
    )
    if "html" in forms:
        write_atomically(files.html, _html(report, drawn).encode(errors="replace"))
    if "md" in forms:
        write_atomically(files.markdown, _markdown(report, list(figures)).encode(errors="replace"))
    if "json" in forms:
        write_atomically(files.json, render_json(report).encode(errors="replace"))
    return files


def _kind(report: Report) -> str:
    kinds = {RunReport: "run", ComparisonReport: "comparison", TuningReport: "tuning"}
    kind = kinds.get(type(report))
    if kind is None:
        raise TypeError(f"expected a RunReport, ComparisonReport or TuningReport, got {type(report).__name__}")
    return kind


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hgde.report"),
        autoescape=lambda name: name is not None and name.endswith((".html.j2", ".css", ".js")),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"value": format_value, "md": _markdown_cell, "score": format_score}
    environment.filters |= {"marked": _marked, "difference": format_difference}
    return environment


def format_value(value: Any) -> str:
    """A setting or fact as a reader likes it: numbers short, lists joined, switches as on and off."""
    if value is None:
        return "none"
    if isinstance(value, bool | np.bool_):
        return "on" if value else "off"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}" if abs(int(value)) >= 10_000 else str(int(value))
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(format_value(item) for item in value)
    return str(value)


def format_score(values: Sequence[float] | float, unit: str = "") -> str:
    """``mean ± spread`` of several values, one number of one."""
    scale = 100.0 if unit == "%" else 1.0
    numbers = scale * np.atleast_1d(np.asarray(values, float))
    spread = float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0
    if unit == "%":
        digits = "{:.1f}"
    elif spread > 0 and math.isfinite(spread):
        # Two digits of the spread, and as many of the mean as they make sense of.
        digits = "{:." + str(min(6, max(0, 1 - math.floor(math.log10(spread))))) + "f}"
    else:
        digits = "{:.4g}"
    text = digits.format(numbers.mean())
    if len(numbers) > 1:
        text += " ± " + digits.format(spread)
    return f"{text} {unit}".strip()


def format_difference(difference: tuple[float, float]) -> str:
    """A mean difference, with the half width of its interval where that is known."""
    mean, half = difference
    return f"{mean:+.2f}" + (f" ± {half:.2f}" if math.isfinite(half) else "")


def _marked(text: str) -> Markup:
    """Text whose parts between backticks are code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a lone backtick is itself
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if k % 2 else part for k, part in enumerate(parts))


def _markdown_cell(value: Any) -> str:
    """Text that stays one cell of a table and is no markup."""
    text = format_value(value).replace("\\", "\\\\").replace("\r", " ").replace("\n", " ")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "|`*_[]":
        text = text.replace(mark, "\\" + mark)
    return text


def _cleaned(value: Any) -> Any:
    """The same with letters that no page may hold (control characters, lone surrogates) replaced by a sign for them."""
    if isinstance(value, str):
        return "".join(letter if _allowed(ord(letter)) else "\ufffd" for letter in value)
    if isinstance(value, Mapping):
        return {_cleaned(name): _cleaned(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_cleaned(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {field.name: _cleaned(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **kept)
    return value


def _allowed(code: int) -> bool:
    if code < 32:
        return code in (9, 10, 13)
    if 127 <= code < 160 or 0xD800 <= code < 0xE000 or 0xFDD0 <= code < 0xFDF0:
        return False
    return code & 0xFFFE != 0xFFFE


def _jsonable(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _jsonable(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return _jsonable(value.tolist())
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, np.generic):
        return _jsonable(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool) or value is None else str(value)
