"""The examples of docs/extending.md, each written to a file of its own and used; nothing else is edited."""

import importlib.util
import re
from pathlib import Path

import pytest

from hgde.pipeline import fit, make_settings

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
EXAMPLES = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
QUICK = {"epochs": 8, "lr": 0.05}


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory):
    """Every example imported from its own file."""
    folder = tmp_path_factory.mktemp("examples")
    for name, code in EXAMPLES.items():
        path = folder / f"example_{name}.py"
        path.write_text(code, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


USES = {
    "model": {"model": {"name": "neighbour-mean", "width": 4}},
    "diffusivity": {"model": {"diffusivity": "lazy", "time": 2.0}},
    "space": {"model": {"space": "stretched", "time": 2.0}},
    "dataset": {"data": {"name": "ladder", "options": ["num_nodes=120"]}},
    "metric": {"task": {"metric": "error_rate"}},
}


def test_every_example_is_used():
    assert set(USES) == set(EXAMPLES)


@pytest.mark.parametrize("name", USES)
def test_it_trains(name):
    data = {"name": "disease-sim", "options": ["num_nodes=150"]}
    settings = make_settings({"data": data, "training": QUICK, **USES[name]})
    summary = fit(settings).summary
    assert 0 <= summary.mean() <= 1
    assert summary.metric.name == ("error_rate" if name == "metric" else "accuracy")
