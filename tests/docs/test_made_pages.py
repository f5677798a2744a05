"""What pages are filled with: stored tables, the demonstration's numbers."""

import doctest
import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_numbers_come_from_results_when_there_are_any(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    hooks = script("hooks")
    assert "hgde reproduce defaults" in hooks.numbers(tmp_path)
    (tmp_path / "defaults.md").write_text("# Defaults\n\n[cora](defaults/cora.json) 81.2\n")
    made = hooks.numbers(tmp_path)
    assert made == "## Defaults\n\ncora 81.2\n"
    filled = hooks.on_page_markdown("a <!-- numbers: begin -->old<!-- numbers: end --> b", None)
    assert "old" not in filled
    assert hooks.on_page_markdown("no place", None) == "no place"


def test_the_list_of_systems_has_all_that_can_be_compared():
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    from hgde.experiments.systems import find_system

    made = script("hooks").on_page_markdown("<!-- systems: begin --><!-- systems: end -->", None)
    names = re.findall(r"^\| `([^`]+)` \| \S", made, flags=re.MULTILINE)
    assert [find_system(name).name for name in names] == names
    assert len(set(names)) == len(names)
    assert {"hgde", "hgde-flat", "hgcn", "label-propagation", "katz"} <= set(names)


def test_docstrings_are_readable_on_the_site():
    pytest.importorskip("griffe", reason="griffe, which reads docstrings for the site, is not installed")
    made = script("docstrings")
    assert doctest.testmod(made) == (0, 1)
    two = "A :class:`~hgde.Graph`.\n\n>>> for k in (1, 2):\n...     print(k)\n1\n2\n\nMore words.\n\n>>> 3\n3\n"
    shown = made.readable(two)
    assert shown.startswith("A `hgde.Graph`.\n\n```pycon\n>>> for k in (1, 2):\n...     print(k)\n1\n2\n```\n\nMore")
    assert shown.count("```") == 4


def test_the_reference_names_everything_public_once():
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    shown = re.findall(r"^::: (\S+)$", script("hooks").reference(), flags=re.MULTILINE)
    assert len(shown) == len(set(shown))
    assert {"hgde.solvers.odeint.odeint", "hgde.solvers.tableau.Tableau", "hgde.pipeline.fitted.load"} <= set(shown)


def test_the_demonstration_has_one_table_everywhere():
    place = script("demo_table").PLACE
    tables = [place.search(path.read_text(encoding="utf-8")) for path in script("demo_table").PAGES]
    assert all(tables)
    assert tables[0][0] == tables[1][0]
    assert len(re.findall(r"^\| .* ± .* \|$", tables[0][0], flags=re.MULTILINE)) == 5


def test_the_best_of_the_demonstration_is_bold(tmp_path):
    made = script("demo_table")
    rows = [{"system": name, "mean": 80.0 + k, "std": 1.0} for k, name in enumerate(made.WORDS)]
    for title in ("taxonomy", "epidemic"):
        (tmp_path / title).mkdir()
        record = {"facts": {"nodes": 9, "parts": {"train": 3}}, "rows": rows}
        (tmp_path / title / "table.json").write_text(json.dumps(record))
    assert made.table(tmp_path).splitlines()[-1] == "| label propagation | **84.0 ± 1.0** | **84.0 ± 1.0** |"


def test_pictures_of_results_are_on_the_site_and_links_into_the_repository_are_not():
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    shown = script("hooks")._without_links("![gains](curvature.png), [nodes](nodes.md), [paper](https://example.org)")
    assert shown == "![gains](images/results/curvature.png), nodes, [paper](https://example.org)"
