"""A package that is really installed adds a model, a diffusivity and a metric; nothing here knows of it."""

import json
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


COMMANDS = """
import json, sys
from hgde.cli.main import run
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["hgde", *arguments]
    try:
        run()
    except SystemExit as end:
        if end.code:
            raise
    print("END OF COMMAND", flush=True)
"""


def hgde(site, *commands):
    """What each command prints, one after the other in one process that finds the plug-in: its start is the cost."""
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    words = json.dumps([[str(word) for word in arguments] for arguments in commands])
    command = [sys.executable, "-c", COMMANDS, words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    *said, rest = done.stdout.split("END OF COMMAND\n")
    assert (len(said), rest) == (len(commands), "")
    return said


def test_it_is_listed_trained_saved_and_used(site, tmp_path):
    quick = ["--data-options", "num_nodes=200", "--epochs", "5", "--preset", "none", "--quiet"]
    trained, flowed = hgde(
        site,
        ["train", "--model", "two-hops", "--metric", "worst_class", *quick, "--out", tmp_path / "model"],
        ["train", "--diffusivity", "to-hubs", *quick, "--out", tmp_path / "flow"],
    )
    assert "worst_class" in trained
    assert "accuracy" in flowed
    brought = {"models": "two-hops", "diffusivities": "to-hubs", "metrics": "worst_class"}
    predicted, *lists = hgde(
        site,
        ["predict", tmp_path / "model", "--out", tmp_path / "p.csv"],
        *(["list", kind] for kind in brought),
    )
    assert "wrote 200 rows" in predicted
    for name, listed in zip(brought.values(), lists, strict=True):
        line = next(line for line in listed.splitlines() if name in line)
        assert "hgde-example" in line
