"""The demonstration: both sets, every system, and a page whose picture shows the tree."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from hgde import pipeline
from hgde.cli.main import app
from hgde.experiments import demo
from hgde.experiments.demo_data import make_taxonomy
from hgde.geometry import ball


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    heard = []
    made = demo.run_demo(out, seeds=1, epochs=4, on_run=heard.append)
    return out, made, heard


def test_every_system_on_both_sets(small):
    _, made, heard = small
    assert set(made.comparisons) == {"epidemic", "taxonomy"}
    for comparison in made.comparisons.values():
        assert {row.name for row in comparison.rows} == set(demo.SYSTEMS)
        assert all(len(row.scores) == 1 for row in comparison.rows)
    assert len(heard) == demo.count_runs(seeds=1)
    assert all(path.exists() for path in (made.page, *made.files))
    assert "data-hgde-explorer" in made.page.read_text(encoding="utf-8")


def test_the_picture_shows_the_tree(small):
    """Root inside, leaves outside, branches apart: by the points of the run that the page is about."""
    out, _, _ = small
    tree = make_taxonomy()
    z = torch.as_tensor(pipeline.load(out / "run").embed())
    assert z.shape == (len(tree.names), 2)
    c = pipeline.load(out / "run").learner.model.manifold.c.detach()
    away = ball.dist(torch.zeros_like(z), z, c).numpy()
    by_depth = [away[tree.depths == depth].mean() for depth in range(tree.depths.max() + 1)]
    assert np.all(np.diff(by_depth) > 0), by_depth
    assert by_depth[-1] > 3 * by_depth[0]
    # An entry is nearer to the one above it than to most others.
    apart = ball.dist(z[:, None], z[None], c).numpy()
    above = apart[np.arange(1, len(z)), tree.parents[1:]]
    closer = (apart[1:] < above[:, None]).mean(1)
    assert np.median(closer) < 0.25
    same = apart[1:, 1:][tree.branches[1:, None] == tree.branches[None, 1:]].mean()
    assert same < 0.6 * apart[1:, 1:][tree.branches[1:, None] != tree.branches[None, 1:]].mean()


def test_the_tables_are_what_anyone_would_bring(tmp_path):
    tree = make_taxonomy(60, seed=3)
    edges, nodes = tree.write(tmp_path)
    assert edges.read_text().splitlines()[:2] == ["source,target", "everything,animals"]
    head, first = nodes.read_text().splitlines()[:2]
    assert head.startswith("id,label,has_00,")
    assert first.startswith("everything,,")
    inherited = make_taxonomy(60, recorded=1.0, wrong=0.0)
    for child, parent in enumerate(inherited.parents[1:], 1):
        assert np.all(inherited.attributes[child] >= inherited.attributes[parent])


def test_the_command_ends_by_naming_its_page(small, monkeypatch):
    out, made, _ = small
    monkeypatch.setattr(demo, "run_demo", lambda *args, **more: made)
    said = CliRunner().invoke(app, ["demo", "--out", str(out), "--workers", "1", "--quiet"], env={"COLUMNS": "80"})
    assert said.exit_code == 0, said.output
    assert "".join(said.output.split()).endswith("report.html")
    assert max(len(line) for line in said.output.splitlines() if str(out) not in line) <= 80
    said = CliRunner().invoke(app, ["demo", "--out", str(out), "--workers", "1", "--json"])
    assert json.loads(said.stdout)["page"] == str(made.page)
