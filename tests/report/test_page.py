"""Pages as text: valid HTML, every figure there, hostile names inert, the same facts as Markdown and JSON."""

import dataclasses
import json
import re
from functools import cache

import numpy as np
import pytest

from hgde.report.contents import DiskView, RunReport, Score
from hgde.report.explorer import explorer_payload, explorer_script, explorer_style
from hgde.report.explorer.assets import PIECES
from hgde.report.explorer.payload import json_for_script
from hgde.report.figures import RUN_FIGURES, make_figures
from hgde.report.page import format_value, render_html, render_json, render_markdown, write_report
from report.samples import CLASSES, HOSTILE, REPORTS, sample_run, sample_view

html5lib = pytest.importorskip("html5lib", reason="html5lib checks that pages are valid HTML")


@cache
def parsed(text):
    """The tree of a page that has no parse error; a page is parsed once, for all that is asked of it."""
    parser = html5lib.HTMLParser(strict=False, namespaceHTMLElements=False)
    tree = parser.parse(text)
    assert parser.errors == []
    return tree


@pytest.fixture(scope="module")
def pages():
    return {name: render_html(make()) for name, make in REPORTS.items()}


@pytest.mark.parametrize("name", REPORTS)
def test_pages_are_valid_and_self_contained(pages, name):
    tree = parsed(pages[name])
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in tree.iter():
        for attribute in ("src", "href", "{http://www.w3.org/1999/xlink}href", "action"):
            value = element.get(attribute)
            assert value is None or value.startswith(("#", "data:")), f"{element.tag} loads {value}"
    references = re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', pages[name])
    assert {a or b for a, b in references} <= set(ids)
    labelled = [element.get("aria-labelledby") for element in tree.iter("section")]
    assert set(labelled) <= set(ids)


@pytest.mark.parametrize("name", REPORTS)
def test_every_figure_is_there_and_not_empty(pages, name):
    report = REPORTS[name]()
    figures = make_figures(report)
    if name == "run":
        assert set(figures) == set(RUN_FIGURES)
    tree = parsed(pages[name])
    plots = [element for element in tree.iter() if element.get("class") == "plot"]
    assert len(plots) == len(figures)
    for plot in plots:
        assert plot.get("aria-label")
        shapes = [element for element in plot.iter() if str(element.tag).endswith(("path", "use", "image"))]
        assert len(shapes) > 5


@pytest.mark.parametrize("name", REPORTS)
def test_hostile_names_stay_text(pages, name):
    tree = parsed(pages[name])
    kinds = [script.get("type") for script in tree.iter("script")]
    assert kinds == (["application/json", "module", None] if name == "run" else [None])
    assert not list(tree.iter("b"))
    assert "window.broken = true" in "".join(tree.itertext())


def test_ids_come_back_from_the_page_as_they_were(pages):
    data = next(script for script in parsed(pages["run"]).iter("script") if script.get("type") == "application/json")
    payload = json.loads(data.text)
    assert unpack_text(payload["ids"]["text"]) == list(sample_view().ids)
    assert payload["classes"] == CLASSES


def unpack(packed):
    import base64
    import zlib

    raw = base64.b64decode(packed["data"])
    raw = zlib.decompress(raw) if packed["deflate"] else raw
    return np.frombuffer(raw, dtype="<" + packed["type"]).reshape(packed["shape"])


def unpack_text(packed):
    return json.loads(unpack(packed).tobytes().decode("utf-8"))


RUN = dataclasses.replace(sample_run(), disk=sample_view(depth=2))


@pytest.mark.parametrize("part", [field.name for field in dataclasses.fields(RunReport) if field.name != "title"])
def test_each_part_stands_alone(part):
    report = RunReport("bare", **{part: getattr(RUN, part)})
    parsed(render_html(report))
    assert render_markdown(report).startswith("# bare")
    assert json.loads(render_json(report))[part]


def test_only_a_title_is_needed():
    for form in (render_html, render_markdown, render_json):
        assert "bare" in form(RunReport("bare"))


def test_scores_stand_beside_their_baselines(pages):
    tables = [table for table in parsed(pages["run"]).iter("table") if "this model" in table.itertext()]
    rows = [["".join(cell.itertext()) for cell in row] for row in tables[0].iter("tr")]
    assert rows[0][:2] == ["score", "this model"]
    assert {"GCN", "MLP"} <= set(rows[0])
    shown = next(dict(zip(rows[0], row, strict=True)) for row in rows[1:] if row[1] == "90.7 ± 1.5 %")
    assert (shown["GCN"], shown["MLP"]) == ("85.0 ± 1.0 %", "50.0 %")
    assert Score("accuracy", [0.91, 0.89, 0.92]).mean == pytest.approx(0.9067, abs=1e-4)
    assert Score("accuracy", [0.9]).std == 0.0


def test_markdown_cells_hold_no_markup():
    text = render_markdown(sample_run())
    assert "<b>" not in text
    assert "<script>" not in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in tables]
    # Lines of one table have one number of cells.
    for line, before, width in zip(tables[1:], widths[:-1], widths[1:], strict=True):
        if line.startswith("| ---"):
            assert before == width
    assert "\n\n\n" not in text


def test_json_holds_every_field_and_no_nan():
    report = dataclasses.replace(sample_run(), data={"nan": float("nan"), "array": np.arange(3)})
    content = json.loads(render_json(report))
    assert {field.name for field in dataclasses.fields(RunReport)} < set(content)
    assert content["data"] == {"nan": None, "array": [0, 1, 2]}
    assert content["disk"]["ids"][1] == HOSTILE[0]


def test_files_are_written(tmp_path):
    files = write_report(RUN, tmp_path / "new" / "folder", "mine")
    assert files.html.name == "mine.html"
    names = {path.name for path in files.figures}
    assert names == {f"{name}.{kind}" for name in RUN_FIGURES for kind in ("svg", "png")}
    assert all(path.stat().st_size > 1000 for path in files.figures)


def test_payload_thins_times_and_precision_to_stay_small():
    count = 150_000
    rng = np.random.default_rng(0)
    view = DiskView(0.5 * rng.random((12, count, 2)), times=list(range(12)))
    payload = explorer_payload(view)
    assert payload["times"][0] == 0
    assert payload["times"][-1] == 11
    assert len(payload["times"]) < 12
    assert payload["positions"]["type"] == "f4"
    assert payload["ids"] == {"kind": "range"}
    np.testing.assert_allclose(unpack(payload["positions"])[-1], view.positions[-1], atol=1e-7)
    small = DiskView(0.5 * rng.random((2, 100, 2)), times=[0, 1], edges=np.array([[0, 5], [7, 9]]))
    payload = explorer_payload(small)
    assert payload["positions"]["type"] == "f8"
    assert np.array_equal(unpack(payload["positions"]), small.positions)
    assert unpack(payload["edges"]).tolist() == [[0, 7], [5, 9]]


def test_json_in_a_script_cannot_end_it():
    text = json_for_script({"name": "</script><!-- \u2028"})
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"name": "</script><!-- \u2028"}


def test_assets_are_complete_and_cannot_end_their_elements():
    script = explorer_script()
    assert "</script" not in script.lower()
    assert "<!--" not in script
    assert "</style" not in explorer_style().lower()
    assert script.count("export default") == 1
    for outside in ("http://", "https://", "import ", "fetch("):
        assert outside not in script.replace("http://www.w3.org/2000/svg", ""), outside
    assert len(PIECES) == len(set(PIECES))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"positions": np.zeros((3, 2))}, "a single picture is positions"),
        ({"positions": np.full((1, 3, 2), 0.9)}, "inside the unit disk"),
        ({"positions": np.zeros((1, 3, 2)), "labels": np.zeros(2)}, "one of labels per node, 3, got 2"),
    ],
)
def test_views_say_what_is_wrong(wrong, words):
    with pytest.raises(ValueError, match=words):
        DiskView(**wrong)


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "on"), (None, "none"), (12345, "12,345"), (0.1234567, "0.1235"), ((1.0, 2), "1, 2"), ({"a": 1}, "a 1")],
)
def test_values_are_readable(value, text):
    assert format_value(value) == text
