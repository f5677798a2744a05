"""The benchmark runs, judges by its bars, and writes what it found."""

import json

import pytest
import torch
from typer.testing import CliRunner

from hgde.bench import MEASUREMENTS, Row, compare, networks, problems, run
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
    assert {"pairs-time", "pairs-memory", "epoch-2", "csr-2", "attention-1", "hrk4", "ham", "pubmed-csr"} <= names
    assert {"backward-0M-16", "forward-0M-16"} <= names
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


def test_a_slow_down_shows(tmp_path):
    path = tmp_path / "before.json"
    path.write_text(json.dumps({"rows": [{"name": "a", "value": 2.0}, {"name": "b", "value": None}]}))
    assert compare.stored(path) == {"a": 2.0}
    assert not compare.is_worse(Row("a", "", 1.81, 1, "at least"), 2.0)
    assert compare.is_worse(Row("a", "", 1.79, 1, "at least"), 2.0)
    assert compare.is_worse(Row("a", "", 2.21, 1, "at most"), 2.0)
    assert not compare.is_worse(Row("a", "", 9.0, None, "report"), 2.0)
    assert compare.words(Row("a", "", 1.0, 1, "at least"), 2.0) == "before 2.00: WORSE"
    path.write_text("{}")
    with pytest.raises(compare.BenchFileError, match="not a file of figures"):
        compare.stored(path)


def test_the_csr_network_propagates_by_the_normalised_adjacency(monkeypatch):
    """Against a dense product; its backward pass takes the matrix for its own transpose."""
    monkeypatch.delenv("HGDE_DATA", raising=False)
    data = problems.citations("cora")
    matrix = networks._csr(data)
    dense = matrix.to_dense()
    assert torch.equal(dense, dense.T)
    x = torch.rand(len(dense), 2, requires_grad=True)
    out = networks._Propagate.apply(x, matrix, matrix)
    torch.testing.assert_close(out, dense @ x)
    torch.testing.assert_close(torch.autograd.grad(out.sum(), x)[0], dense.sum(0)[:, None].expand(-1, 2))
