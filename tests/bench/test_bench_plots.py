"""The pictures of the cost are drawn from measurements taken then."""

import pytest
import torch
from typer.testing import CliRunner

from hgde.bench import run
from hgde.bench.plots import Pass
from hgde.cli.main import app


def test_pictures_are_written(tmp_path, monkeypatch):
    monkeypatch.delenv("HGDE_DATA", raising=False)
    before = torch.get_num_threads()
    result = CliRunner().invoke(app, ["bench", "--quick", "--threads", "1", "--plots", str(tmp_path / "images")])
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "images").iterdir()} == {"roofline.png", "cost.png"}
    assert torch.get_num_threads() == before


def test_a_pass_has_a_place_under_the_roof():
    entry = Pass("forward", edges=1000, bytes_per_edge=10, flops_per_edge=40, seconds=1e-5)
    assert entry.intensity == 4
    assert entry.speed == pytest.approx(4.0)


def test_hyperbolic_peers_are_measured(monkeypatch):
    monkeypatch.delenv("HGDE_DATA", raising=False)
    rows = list(run(["hyperbolic"], quick=True))
    assert [row.name for row in rows] == ["hgcn-2", "hybonet-2"]
    assert all(row.value > 0 and row.bar == 3 for row in rows)
