"""The benchmark runs, judges by its bars, and writes what it found."""

import json

import pytest
from typer.testing import CliRunner

from hgde.bench import MEASUREMENTS, Row, run
from hgde.cli.main import app


@pytest.mark.slow
def test_quick_run_writes_every_row_and_the_machine(tmp_path, monkeypatch):
    monkeypatch.delenv("HGDE_DATA", raising=False)
    path = tmp_path / "deep" / "bench.json"
    result = CliRunner().invoke(app, ["bench", "--quick", "--threads", "1", "--output", str(path)])
    assert result.exit_code == 0, result.output
    content = json.loads(path.read_text())
    names = {row["name"] for row in content["rows"]}
    assert {"flow-large", "flow-textbook", "flow-cora", "memory", "scaling", "bandwidth", "ricci-cora"} <= names
    assert {"pairs-time", "pairs-memory", "epoch-2"} <= names
    assert content["machine"]["threads"] == 1
    assert "random data of the same size" in result.output


@pytest.mark.parametrize(
    ("value", "sense", "met"),
    [
        (2.0, "at least", True),
        (0.5, "at least", False),
        (0.5, "at most", True),
        (None, "at most", None),
        (9, "report", None),
    ],
)
def test_a_row_is_judged_by_its_bar(value, sense, met):
    assert Row("name", "what", value, 1.0, sense).met is met


def test_unknown_measurements_are_refused():
    with pytest.raises(ValueError, match="unknown measurement 'speed'"):
        list(run(["speed"]))
    assert "flow" in MEASUREMENTS
