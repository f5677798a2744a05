"""Links between pages lead somewhere, headings included; code in pages names what there is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "results" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MADE = {
    "reference.md",
    "benchmarks.md",
    *(f"tutorials/{p.stem}.md" for p in (ROOT / "docs" / "tutorials").glob("*.py")),
}
"""Pages of the site that are made when it is built."""


def links(text):
    without_code = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", without_code)


def anchors(text):
    headings = re.findall(r"^#+ (.*)", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page):
    for link in links(page.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        place, _, heading = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        inside = str(target.relative_to(ROOT / "docs")) if target.is_relative_to(ROOT / "docs") else ""
        assert target.exists() or inside in MADE, f"{link} leads nowhere"
        if heading and target.suffix == ".md" and target.exists():
            assert heading in anchors(target.read_text(encoding="utf-8")), f"{link}: no such heading"


def test_every_page_of_the_site_is_in_its_table_of_contents():
    named = set(re.findall(r"[\w./-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    written = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert named == written | MADE


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name)
def test_commands_in_pages_exist(page):
    from hgde.cli.main import COMMANDS

    blocks = re.findall(r"```(?:bash|text)?\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for line in "\n".join(blocks).splitlines():
        used = re.match(r"\s*(?:HGDE_DATA=\S+ )?hgde (\w+)", line)
        assert used is None or used[1] in COMMANDS, f"there is no command in: {line}"


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 75
