"""Real processes on loopback: torchrun, our own launcher, a killed rank, a resumed run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from partitions import cut, prepared_for, settings_of

import hgde
from hgde.distributed import PartitionError, Ranks, start_run
from hgde.distributed.fit import resumed_run

GIVEN = {
    "model": {"width": 8, "time": 2.0, "diffusivity": {"name": "attention"}, "solver": {"name": "hrk4"}},
    "training": {"epochs": 4},
    "preset": "none",
}
FLAGS = ["--width", "8", "--time", "2", "--diffusivity", "attention", "--method", "hrk4", "--preset", "none"]


@pytest.fixture
def partition(tmp_path):
    settings = settings_of("nodes")
    return cut(tmp_path, prepared_for(settings), settings, pieces=5)


def environment():
    source = str(Path(hgde.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}


def train(*arguments, launcher=("-m", "hgde")):
    command = [sys.executable, *launcher, "train", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=240, check=False)


def model_of(run):
    return (run / "seed-0" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("ranks", [2, 4])
def test_torchrun_gives_the_bits_of_one_process(tmp_path, partition, ranks):
    start_run(partition, {**GIVEN, "training": {"epochs": 2}}, Ranks(), tmp_path / "one").train()
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--standalone", "-m", "hgde")
    given = ("--partitioned", partition.path, "--out", tmp_path / "many", "--epochs", "2", *FLAGS)
    done = train(*given, launcher=launcher)
    assert done.returncode == 0, done.stderr
    assert f"{ranks} ranks" in done.stdout
    assert model_of(tmp_path / "many") == model_of(tmp_path / "one")


@pytest.mark.slow
def test_a_killed_rank_stops_the_others_and_the_run_goes_on(tmp_path, partition):
    run, epochs = tmp_path / "run", 80
    given = ["--partitioned", partition.path, "--out", run, "--epochs", epochs, "--patience", epochs, *FLAGS]
    command = [sys.executable, "-m", "hgde", "train", *map(str, given), "--checkpoint-every", "1", "--ranks", "3"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    )
    try:
        place = run / "seed-0" / "checkpoint.safetensors"
        deadline = time.monotonic() + 180
        while not place.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.2)
        assert place.exists(), process.stderr.read() if process.poll() is not None else "no checkpoint in time"
        victim = ranks_of(process.pid)[1]
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        _, errors = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    assert time.monotonic() - killed < 30
    assert process.returncode == 2
    assert "was killed by SIGKILL" in errors
    assert "--resume" in errors
    resumed_run(run, Ranks(), {}).train(resume=True)
    settings = {**GIVEN, "training": {"epochs": epochs, "patience": epochs}}
    start_run(partition, settings, Ranks(), tmp_path / "whole").train()
    assert model_of(run) == model_of(tmp_path / "whole")


def ranks_of(launcher):
    """The processes that a launcher has started, in the order of their ranks."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return sorted(int(child) for child in children)


@pytest.mark.slow
def test_resuming_with_another_number_of_ranks(tmp_path, partition):
    half = {**GIVEN, "training": {"epochs": 2}}
    start_run(partition, half, Ranks(), tmp_path / "run").train()
    done = train("--resume", tmp_path / "run", "--epochs", "4", "--ranks", "2")
    assert done.returncode == 0, done.stderr
    start_run(partition, GIVEN, Ranks(), tmp_path / "whole").train()
    assert model_of(tmp_path / "run") == model_of(tmp_path / "whole")


def test_another_partition_is_not_resumed_on(tmp_path, partition):
    start_run(partition, {**GIVEN, "training": {"epochs": 1}}, Ranks(), tmp_path / "run").train()
    facts = partition.path / "partition.json"
    facts.write_text(facts.read_text().replace('"starts"', '"begins"'))
    with pytest.raises((PartitionError, KeyError)):
        resumed_run(tmp_path / "run", Ranks(), {})
