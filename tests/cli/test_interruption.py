"""A training process that is really killed, interrupted or out of disk goes on to the result of an undisturbed one."""

import random
import signal
import time

import pytest
from command import hgde
from graph_files import QUICK, start, write_graph

from hgde.training.checkpoint import CheckpointError, load

EPOCHS = 90


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    named = write_graph(tmp_path_factory.mktemp("graph"))
    long = ["--epochs", str(EPOCHS), "--patience", str(EPOCHS), "--checkpoint-every", "7", "--preset", "none"]
    return ["train", *named, *QUICK, *long, "--quiet"]


def model(folder):
    return (folder / "seed-0" / "model.safetensors").read_bytes()


def finish(arguments):
    process = start(arguments)
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return out


@pytest.fixture(scope="module")
def undisturbed(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    finish([*command, "--out", str(folder)])
    return folder


def wait_for_epoch(folder, epoch, process):
    """Until a checkpoint of that epoch or a later one is there."""
    path = folder / "seed-0" / "checkpoint.safetensors"
    while process.poll() is None:
        if path.exists() and load(path)[1]["progress"]["epoch"] >= epoch:
            return
        time.sleep(0.005)
    raise AssertionError(f"it ended before epoch {epoch}: {process.communicate()}")


def resume(folder):
    finish(["train", "--resume", str(folder), "--quiet"])
    return model(folder)


def as_in_a_terminal():
    """A shell starts what runs in the background with SIGINT ignored, and every process below inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_killed_at_a_random_epoch(command, undisturbed, tmp_path):
    folder, epoch = tmp_path / "run", random.randint(1, EPOCHS // 3)
    process = start([*command, "--out", str(folder)])
    wait_for_epoch(folder, epoch, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not (folder / "seed-0" / "model.safetensors").exists()
    assert resume(folder) == model(undisturbed), f"killed after epoch {epoch}"


@pytest.mark.slow
def test_interrupted_from_the_keyboard(command, undisturbed, tmp_path):
    folder = tmp_path / "run"
    process = start([*command, "--out", str(folder)], preexec_fn=as_in_a_terminal)
    wait_for_epoch(folder, 14, process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in error
    assert "Traceback" not in error
    assert resume(folder) == model(undisturbed)


@pytest.mark.slow
def test_a_full_disk(command, undisturbed, tmp_path):
    resource = pytest.importorskip("resource", reason="limits on file sizes are POSIX")
    folder = tmp_path / "run"
    # Room for the data, and for checkpoints until the history has grown.
    room = (undisturbed / "data.safetensors").stat().st_size + 200
    assert (undisturbed / "seed-0" / "checkpoint.safetensors").stat().st_size > room

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    process = start([*command, "--out", str(folder)], preexec_fn=limit)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 2, error
    assert "the previous one is intact" in error
    assert "--resume" in error
    assert "Traceback" not in error
    kept = load(folder / "seed-0" / "checkpoint.safetensors")[1]["progress"]["epoch"]
    assert 0 < kept < EPOCHS
    assert not list((folder / "seed-0").glob(".*")), "no half-written file is left behind"
    assert resume(folder) == model(undisturbed)


def test_no_room_for_the_data(tmp_path):
    resource = pytest.importorskip("resource", reason="limits on file sizes are POSIX")
    named, before = write_graph(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    try:
        # A model without kernels: workers that compile would inherit the limit, and their objects be lost.
        output = hgde("train", *named, "--model", "mlp", "--epochs", "1", "--out", tmp_path / "run", code=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "could not write" in output
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_cut_short_is_named(command, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(b"\x10\x00\x00")
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        load(path)
