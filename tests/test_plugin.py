"""A package that is really installed adds a model, a diffusivity and a metric; nothing here knows of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the plug-in installed by pip, from a copy, so that the build leaves nothing behind."""
    pytest.importorskip("setuptools", reason="the plug-in is built with setuptools, which is not installed")
    import shutil

    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(PLUGIN, source)
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "--target", str(target), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def hgde(site, *arguments):
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "hgde", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.parametrize(
    ("kind", "name"), [("models", "two-hops"), ("diffusivities", "to-hubs"), ("metrics", "worst_class")]
)
def test_it_is_listed_with_who_brought_it(site, kind, name):
    line = next(line for line in hgde(site, "list", kind).splitlines() if name in line)
    assert "hgde-example" in line


def test_it_is_trained_saved_and_used(site, tmp_path):
    quick = ["--data-options", "num_nodes=200", "--epochs", "20", "--preset", "none", "--quiet"]
    out = hgde(site, "train", "--model", "two-hops", "--metric", "worst_class", *quick, "--out", tmp_path / "model")
    assert "worst_class" in out
    assert "wrote 200 rows" in hgde(site, "predict", tmp_path / "model", "--out", tmp_path / "p.csv")
    out = hgde(site, "train", "--diffusivity", "to-hubs", *quick, "--out", tmp_path / "flow")
    assert "accuracy" in out
