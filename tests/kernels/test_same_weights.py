"""Training gives the same weights whatever compiled the kernels, for what processor, on how many threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hgde
from hgde.diffusion import DIFFUSIVITIES

TRAIN = """
import hashlib, sys
from pathlib import Path
from hgde.pipeline import fit, make_settings
threads, folder, *names = sys.argv[1:]
own = {"linear-global": {"landmarks": 16}}  # with a landmark for every node it is global
for name in names:
    settings = {
        "preset": "none",
        "data": {"options": ["num_nodes=120"]},
        "model": {"time": 2.0, "dropout": 0.3, "state_dropout": 0.1,
                  "diffusivity": {"name": name, **own.get(name, {})}},
        "training": {"epochs": 4, "lr": 0.05},
        "run": {"threads": int(threads)},
    }
    fit(make_settings(settings), Path(folder) / name)
    weights = (Path(folder) / name / "seed-0" / "model.safetensors").read_bytes()
    print(name, hashlib.sha256(weights).hexdigest())
"""


def weights(folder, cache, threads, **variables):
    """``{diffusivity: digest of its weights}`` of a process of its own."""
    source = str(Path(hgde.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": source, "HGDE_CACHE": str(cache), **variables}
    command = [sys.executable, "-W", "ignore", "-c", TRAIN, str(threads), str(folder), *DIFFUSIVITIES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)


@pytest.mark.slow
def test_the_same_weights_from_an_empty_cache_a_filled_one_on_threads_and_for_the_plainest_processor(tmp_path):
    """Torch's own elementwise functions choose by the processor too (``ATEN_CPU_CAPABILITY``): docs/numerics.md."""
    compiled = weights(tmp_path / "compiled", tmp_path / "cache", 1)
    assert set(compiled) == set(DIFFUSIVITIES)
    assert len(set(compiled.values())) == len(compiled)
    assert weights(tmp_path / "loaded", tmp_path / "cache", 2) == compiled
    assert weights(tmp_path / "generic", tmp_path / "cache", 2, HGDE_CPU_NAME="generic") == compiled
