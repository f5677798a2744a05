"""The demo, shortened: three models on one split, a picture and a table of results."""

import json

from hgde.experiments import demo
from hgde.training.run import Reporter


class Quiet(Reporter):
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def test_it_trains_three_models_and_draws(monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "SETTINGS", demo.SETTINGS.replace(epochs=3, threads=1))
    result = demo.run_demo(tmp_path, 0, lambda label: Quiet())
    assert [row.model for row in result.rows] == ["MLP", "GCN", "HGDE"]
    assert all(0 <= row.accuracy <= 1 for row in result.rows)
    assert result.curvature > 0
    assert (tmp_path / "embedding.png").stat().st_size > 10_000
    assert json.loads((tmp_path / "result.json").read_text())["rows"][2]["model"] == "HGDE"
