"""Reports of runs, from files on disk to pages: every task, hostile names, damaged folders, the commands."""

import dataclasses
import json
import shlex
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from hgde import pipeline
from hgde.cli.main import app
from hgde.pipeline import RunError
from hgde.report.from_run import explorer_of_run, report_of_run
from hgde.report.page import render_explorer, render_html, render_json, render_markdown
from report.runs import TASKS, settings_for, write_files
from report.samples import HOSTILE

html5lib = pytest.importorskip("html5lib", reason="html5lib checks that pages are valid HTML")


def parsed(text):
    parser = html5lib.HTMLParser(strict=False, namespaceHTMLElements=False)
    tree = parser.parse(text)
    assert parser.errors == []
    return tree


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def runs(files, tmp_path_factory):
    """A function that gives the folder of a run on a task, trained once."""
    folder, made = tmp_path_factory.mktemp("runs"), {}

    def find(task):
        if task not in made:
            more = {"run": {"seeds": 2}} if task == "nodes" else {}
            pipeline.fit(settings_for(task, files, **more), folder / task)
            made[task] = folder / task
        return made[task]

    return find


@pytest.fixture(scope="module")
def reports(runs):
    made = {}

    def find(task):
        if task not in made:
            made[task] = report_of_run(runs(task))
        return made[task]

    return find


def hgde(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.output


EXPECTED = {
    "nodes": {"losses", "score", "curvature", "confusion", "calibration", "energy", "embedding"},
    "links": {"losses", "score", "curvature", "confusion", "calibration", "energy", "embedding"},
    "regression": {"losses", "score", "curvature", "values", "energy", "embedding"},
    "multilabel": {"losses", "score", "curvature", "calibration", "energy", "embedding"},
}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_its_page(reports, task):
    report = reports(task)
    page = render_html(report)
    tree = parsed(page)
    plots = [element for element in tree.iter() if element.get("class") == "plot"]
    assert len(plots) == len(EXPECTED[task])
    for plot in plots:
        shapes = [element for element in plot.iter() if str(element.tag).endswith(("path", "use", "image"))]
        assert len(shapes) > 5
    text = "".join(tree.itertext())
    for heading in ("Scores", "The embedding", "Worst mistakes", "Settings", "Versions", "How to reproduce"):
        assert heading in text
    assert [script.get("type") for script in tree.iter("script")] == ["application/json", "module", None]
    assert json.loads(render_json(report))["kind"] == "run"
    assert render_markdown(report).startswith("# edges")


@pytest.mark.parametrize("task", TASKS)
def test_scores_are_those_of_the_run_beside_baselines(reports, runs, task):
    report = reports(task)
    summary = json.loads((runs(task) / "summary.json").read_text())
    first = report.scores[0]
    assert first.mean == pytest.approx(summary["mean"])
    assert first.std == pytest.approx(summary["std"])
    assert len(first.values) == len(summary["outcomes"])
    assert first.baselines
    assert report.parts == json.loads((runs(task) / "run.json").read_text())["parts"]
    assert len(report.history.epochs) == 6


def test_parts_follow_from_the_predictions(reports, runs):
    report = reports("nodes")
    table = pipeline.load(runs("nodes")).predict()
    tested = table["part"] == "test"
    assert report.confusion.sum() == tested.sum()
    right = (table["prediction"] == table["truth"])[tested].mean()
    assert np.trace(report.confusion) / report.confusion.sum() == pytest.approx(right)
    assert len(report.mistakes) == min(10, round((1 - right) * tested.sum()))
    assert sorted(row.name for row in report.classes) == ["ill </td>", "well"]


def test_the_disk_shows_the_flow(reports):
    view = reports("nodes").disk
    assert list(view.times) == [0.0, 1.0, 2.0]
    assert view.positions.shape == (3, 70, 2)
    assert np.abs(view.positions[0] - view.positions[-1]).max() > 1e-3
    rows = view.local_weights.values.sum(1)
    assert np.all(rows[view.degrees < 10] < 1)  # a loop at every node has the rest of a row
    assert reports("nodes").energy.times == [0.0, 1.0, 2.0]


def test_hostile_names_stay_text(reports):
    tree = parsed(render_html(reports("nodes")))
    assert not list(tree.iter("b"))
    assert not [cell for cell in tree.iter("td") if cell.get("class") == "broken"]
    title, view, energy = "x", reports("nodes").disk, reports("nodes").energy
    assert HOSTILE[0] in view.ids
    assert max(map(len, view.ids)) == 10_000
    alone = parsed(render_explorer(title, view, energy))
    assert [script.get("type") for script in alone.iter("script")] == ["application/json", "module", None]


def test_global_weights_and_other_models(files, tmp_path):
    more = {"width": 3, "time": 1.0, "diffusivity": {"name": "local-global", "beta": 0.3}, "space": "lorentz"}
    pipeline.fit(settings_for("nodes", files, model=more), tmp_path / "mixed")
    _, view, energy = explorer_of_run(tmp_path / "mixed")
    assert view.global_weights.values.shape == (70, 10)
    assert np.all(view.global_weights.values.sum(1) <= 0.3 + 1e-6)
    assert energy is not None
    given = settings_for("nodes", files).given | {"model": "mlp"}
    pipeline.fit(pipeline.make_settings(given), tmp_path / "mlp")
    report = report_of_run(tmp_path / "mlp", baselines=False)
    assert report.energy is None
    assert report.disk.local_weights is None
    assert "Euclidean" in report.disk.method
    assert report.reproduce[-1] == "hgde report mlp"


def test_how_to_reproduce_gives_the_same_run(reports, runs, tmp_path):
    words = shlex.split(reports("nodes").reproduce[0])
    assert words[:2] == ["hgde", "train"]
    hgde(*words[1:], "--out", tmp_path / "again", "--quiet")
    before, after = (json.loads((f / "summary.json").read_text()) for f in (runs("nodes"), tmp_path / "again"))
    assert [o["test"] for o in before["outcomes"]] == [o["test"] for o in after["outcomes"]]


def test_the_choice_of_a_preset_is_told(runs, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(runs("nodes"), folder)
    rung = {"epoch": 25, "scores": {"sparse": 0.8, "deep": 0.7}, "kept": ["sparse"]}
    (folder / "choice.json").write_text(json.dumps({"chosen": "sparse", "rungs": [rung], "reason": ""}))
    report = report_of_run(folder, baselines=False)
    assert report.choice == ["epoch 25: sparse 80.0, deep 70.0", "chosen: sparse"]
    assert "How the preset was chosen" in render_html(report)
    (folder / "choice.json").write_text("[]")
    with pytest.raises(RunError, match="damaged"):
        report_of_run(folder, baselines=False)


def test_damaged_results_are_refused_in_words(runs, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(runs("regression"), folder)
    result = folder / "seed-0" / "result.json"
    result.write_text(json.dumps({"seed": 0}))
    with pytest.raises(RunError, match="damaged"):
        report_of_run(folder)
    assert "not the folder of a run" in hgde("report", tmp_path, code=2)


def test_commands_write_what_they_say(runs, tmp_path):
    run = runs("nodes")
    said = hgde("report", run, "--out", tmp_path / "page", "--format", "md", "--no-baselines")
    assert (tmp_path / "page" / "report.md").exists()
    assert not (tmp_path / "page" / "report.html").exists()
    assert "report.md" in said
    hgde("explore", run, "--out", tmp_path / "disk.html")
    assert "data-hgde-explorer" in (tmp_path / "disk.html").read_text(encoding="utf-8")
    assert "--to-disk must be one of" in hgde("explore", run, "--to-disk", "magic", code=2)
    assert "--format must be one of" in hgde("report", run, "--format", "pdf", code=2)


def test_embeddings_in_every_model_and_for_other_programs(runs, tmp_path):
    import networkx
    import pandas as pd

    run = runs("nodes")
    hgde("embed", run, "--to", "lorentz", "--out", tmp_path / "l.csv")
    points = pd.read_csv(tmp_path / "l.csv").filter(like="z").to_numpy()
    c = json.loads((tmp_path / "l.json").read_text())["curvatures"]["diffusion"]
    assert np.allclose(points[:, 0] ** 2 - (points[:, 1:] ** 2).sum(1), 1 / c, rtol=1e-5)
    said = hgde("embed", run, "--to-disk", "principal", "--out", tmp_path / "d.csv", "--export", tmp_path / "g.gexf")
    assert "distortion" in said
    assert "10-neighbour overlap" in said
    assert pd.read_csv(tmp_path / "d.csv").shape == (70, 3)
    graph = networkx.read_gexf(tmp_path / "g.gexf")
    assert graph.number_of_nodes() == 70
    hgde("embed", run, "--export", tmp_path / "projector")
    assert len((tmp_path / "projector" / "vectors.tsv").read_text().splitlines()) == 70
    assert "give one of them" in hgde("embed", run, "--to", "klein", "--to-disk", "stress", code=2)
    assert "--to must be one of" in hgde("embed", run, "--to", "torus", code=2)


def test_output_for_scripts(runs, tmp_path):
    run = runs("nodes")
    scores = json.loads(hgde("evaluate", run, "--json"))["scores"]
    stored = json.loads((run / "summary.json").read_text())["outcomes"][0]["test"]
    assert scores["test"]["accuracy"] == pytest.approx(stored["accuracy"])
    said = json.loads(hgde("predict", run, "--out", tmp_path / "p.csv", "--json"))
    assert said["rows"] == 70


def test_warnings_are_about_this_run(reports):
    words = " ".join(reports("nodes").warnings)
    assert "more epochs may do better" in words or reports("nodes").history.best_epoch < 6
    assert "only 14 items" in words
    assert dataclasses.asdict(reports("nodes"))["title"] == "edges: classes of nodes"
