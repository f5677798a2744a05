"""Pages of a real comparison and a real search on a graph in CSV files with hostile names."""

import numpy as np
import pytest
from matplotlib.image import imread

from hgde.experiments.compare import Request, compare
from hgde.experiments.compare_report import write_comparison
from hgde.experiments.tune import tune
from report.runs import settings_for, write_files

html5lib = pytest.importorskip("html5lib", reason="html5lib checks that pages are valid HTML")


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Data, task and training of the tests' run on CSV files; models are what is compared."""
    settings = settings_for("nodes", write_files(tmp_path_factory.mktemp("files"))).given
    return {name: value for name, value in settings.items() if name in ("data", "task", "training", "run")}


def checked(page, pictures):
    """The text of a valid page with as many figures as there are picture files, which have something on them."""
    parser = html5lib.HTMLParser(strict=False, namespaceHTMLElements=False)
    tree = parser.parse(page.read_text(encoding="utf-8"))
    assert parser.errors == []
    plots = [element for element in tree.iter() if element.get("class") == "plot"]
    assert len(plots) == len(pictures)
    for plot in plots:
        shapes = [element for element in plot.iter() if str(element.tag).endswith(("path", "use"))]
        assert len(shapes) > 5
    for picture in pictures:
        pixels = imread(picture)[..., :3]
        coloured = (pixels.max(-1) - pixels.min(-1)) > 0.2
        assert coloured.sum() > 50, f"{picture} has axes at most"
        assert np.ptp(pixels) > 0.5
    assert not list(tree.iter("b"))
    return " ".join("".join(tree.itertext()).split())


def test_page_of_a_comparison(given, tmp_path):
    request = Request(given, ("gcn", "majority"), trials=1, splits=2, workers=0)
    files = write_comparison(compare(request, tmp_path), tmp_path, ["hgde compare --edges e.csv"])
    text = checked(files[-1], [tmp_path / "table.png"])
    assert "majority" in text
    assert "hgde compare --edges e.csv" in text
    assert "each with its preset" in text


def test_page_of_a_search(given, tmp_path):
    pytest.importorskip("optuna", reason="searches need optuna")
    wanted = {**given, "model": {"name": "gcn"}}
    tuned = tune(wanted, tmp_path, trials=5, folds=1, workers=0, reproduce=["hgde tune --edges e.csv"])
    page = next(path for path in tuned.files if path.suffix == ".html")
    names = ("trials", "importances") if tuned.found.importances else ("trials",)
    text = checked(page, [page.parent / "figures" / f"{name}.png" for name in names])
    assert "hgde tune --edges e.csv" in text
    assert "no test score was read" in text
