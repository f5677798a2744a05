"""What the documentation makes when it is built: tutorials with their output, the reference, pages of results.

A tutorial is a script. It is run cell by cell; a cell's output stands below it, and a cell that fails fails the build.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import pkgutil
import re
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

HERE = Path(__file__).resolve().parent
DOCS, ROOT = HERE.parent, HERE.parent.parent
PICTURES = "images/results"
"""Where the site has the pictures of ``results/``."""
RUN = os.environ.get("HGDE_DOCS_RUN", "1") != "0"
"""HGDE_DOCS_RUN=0 builds without running the tutorials, to see a change of words at once."""


def on_files(files: Files, config: Any) -> Files:
    for script in sorted((DOCS / "tutorials").glob("*.py")):
        files.append(File.generated(config, f"tutorials/{script.stem}.md", content=tutorial(script)))
    files.append(File.generated(config, "reference.md", content=reference()))
    files.append(File.generated(config, "benchmarks.md", content=benchmarks()))
    for picture in sorted((ROOT / "results").glob("*.png")):
        files.append(File.generated(config, f"{PICTURES}/{picture.name}", abs_src_path=str(picture)))
    return files


def cells(text: str) -> list[tuple[str, str]]:
    """``(kind, text)`` of each cell of a script; its docstring is the first, words."""
    intro, rest = re.fullmatch(r'"""(.*?)"""\n(.*)', text, re.DOTALL).groups()
    found = [("words", intro.strip())]
    for piece in re.split(r"^# %%", rest, flags=re.MULTILINE)[1:]:
        head, _, body = piece.partition("\n")
        if "[markdown]" in head:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()]
            found.append(("words", "\n".join(lines)))
        else:
            found.append(("code", body.strip("\n")))
    return found


def tutorial(script: Path) -> str:
    """A script as a page, with what it prints."""
    space: dict[str, Any] = {"__name__": "__main__"}
    parts = []
    for kind, text in cells(script.read_text(encoding="utf-8")):
        if kind == "words":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        if RUN:
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(text, str(script), "exec"), space)
            if said.getvalue().strip():
                parts.append(f"```text\n{said.getvalue().rstrip()}\n```")
    source = f"docs/tutorials/{script.name}"
    return "\n\n".join([*parts, f"---\n\nThis page is a script, `{source}`; the tests run it."]) + "\n"


def reference() -> str:
    """Every public name, from its docstring, by the package it lives in: first what ``hgde`` itself gives."""
    import hgde

    lines = ["# Reference", "", "Everything that `import hgde` gives; names are imported when first used.", ""]
    shown: set[int] = set()
    for home, names in hgde._HOMES.items():
        lines += [f"## {home}", ""]
        for name in sorted(names, key=str.lower):
            lines += _name_lines(home, name, getattr(hgde, name), shown)
    lines += ["## More from the packages", "", "What packages offer besides, for those who build on them.", ""]
    for package in _packages(hgde):
        module = import_module(package)
        names = sorted(module.__all__, key=str.lower)
        more = [line for name in names for line in _name_lines(package, name, getattr(module, name), shown)]
        lines += [f"## {package}: more", "", *more] if more else []
    return "\n".join(lines)


def _packages(root: Any) -> list[str]:
    """Packages with a list of names, but for Triton's, which can be imported only where Triton is."""
    found = (package.name for package in pkgutil.walk_packages(root.__path__, "hgde.") if package.ispkg)
    return [name for name in found if name != "hgde.kernels.triton" and hasattr(import_module(name), "__all__")]


def _name_lines(home: str, name: str, value: Any, shown: set[int]) -> list[str]:
    """A name's part of the page; nothing for what stands there already and for constants."""
    if id(value) in shown:
        return []
    shown.add(id(value))
    if type(value).__name__ == "Registry":
        return registry_lines(home, name, value)
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return []
    return [f"::: {value.__module__}.{name}", ""]


def registry_lines(home: str, name: str, registry: Any) -> list[str]:
    """A registry and what is in it, with the first line of each entry's docstring."""
    lines = [f"### `{name}` {{: #{home}.{name} }}", "", f"Registry: every {registry.noun} by name.", ""]
    lines += ["| name | what |", "| --- | --- |"]
    for key, entry in registry.items():
        lines.append(f"| `{key}` | {_first_sentence(getattr(entry, 'title', None) or entry.__doc__)} |")
    return [*lines, ""]


def _first_sentence(text: str | None) -> str:
    words = re.sub(r":(?:class|func|meth|mod):(?=`)", "", " ".join((text or "").split()))
    return re.split(r"(?<=[.:])\s", words, maxsplit=1)[0].rstrip(":").replace("|", "\\|")


def benchmarks() -> str:
    """Every stored table of results, as it was written."""
    pages = [page for page in sorted((ROOT / "results").glob("*.md")) if page.name != "README.md"]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    lines = [
        "# Results", "",
        "Made from the records in `results/`, which hold settings, splits, seeds and versions. Settings were chosen on "
        "validation parts alone. Figures called *published* are the paper's; all others were measured here.",
    ]  # fmt: skip
    if not pages:
        lines += ["", "No table is stored yet: `hgde reproduce nodes` makes one."]
    return _without_links("\n\n".join(["\n".join(lines), *(re.sub(r"^#", "##", t, flags=re.MULTILINE) for t in texts)]))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Numbers are put where a page has a place for them; no page has a number of ours typed in."""
    for name, made in (("numbers", lambda _: numbers(ROOT / "results")), ("systems", lambda _: systems())):
        place = re.compile(rf"<!-- {name}: begin -->.*<!-- {name}: end -->", re.DOTALL)
        markdown = place.sub(made, markdown)
    return markdown


def systems() -> str:
    """Every system that can be compared: models with their papers, variants of them, and what needs no training."""
    from hgde.experiments.systems import VARIANTS
    from hgde.models.base import MODELS
    from hgde.report.callbacks import flat
    from hgde.tasks.baselines import BASELINES

    lines = ["| system | what it is |", "| --- | --- |"]
    lines += [f"| `{name}` | {model.paper or 'this package'} |" for name, model in MODELS.items()]
    for name, variant in VARIANTS.items():
        fixed = ", ".join(
            f"`{path}` = {value}" for path, value in flat(variant.changes).items() if path != "model.name"
        )
        lines.append(f"| `{name}` | `{variant.model}` with {fixed} |")
    trained = set(MODELS.names())
    free = ((name, entry) for name, entry in BASELINES.items() if name not in trained)
    lines += [
        f"| `{name}` | {_first_sentence(entry.function.__doc__).rstrip('.')} (not trained) |" for name, entry in free
    ]
    return "\n".join(lines)


def numbers(results: Path) -> str:
    """The tables that say where HGDE is ahead and where it is not, as far as they were run."""
    made = []
    for name in ("defaults", "curvature"):
        source = results / f"{name}.md"
        if source.exists():
            text = source.read_text(encoding="utf-8")
            made.append(_without_links(re.sub(r"^#", "##", text, flags=re.MULTILINE)))
    if made:
        return "\n\n".join(made)
    words = "None are stored yet: `hgde reproduce defaults` makes `results/defaults.md`, which is shown here."
    return f"!!! note\n\n    {words}"


def _without_links(text: str) -> str:
    """Links lead into the repository, which the site does not hold; pictures beside the tables it does."""
    text = re.sub(r"!\[([^\]]+)\]\(([\w-]+\.png)\)", rf"![\1]({PICTURES}/\2)", text)
    return re.sub(rf"!?\[([^\]]+)\]\((?!https?://|#|{PICTURES}/)[^)]*\)", r"\1", text)
