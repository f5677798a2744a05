"""Fixtures shared by all tests."""

import gc
import os
from pathlib import Path

import pytest

_NAMED = os.environ.get("HGDE_DATA")
DATA_FOLDER = Path(_NAMED) if _NAMED else Path(__file__).resolve().parents[2] / "shared" / "datasets"


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data files; tests that need one which is not there are skipped."""
    if not DATA_FOLDER.is_dir():
        pytest.skip(f"no data folder at {DATA_FOLDER}; name one with HGDE_DATA")
    return DATA_FOLDER


@pytest.fixture
def data_file(data_folder):
    """A function that gives the path of a real data file, or skips the test."""

    def find(name: str) -> Path:
        path = data_folder / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"{path} is not there")
        return path

    return find


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and tests stay to the end: garbage is not looked for among them, neither while they come nor later.

    Looking for it was a fifth of the time in which tests are collected.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_runtest_setup():
    """What a test draws without a generator of its own does not depend on the tests that ran before it."""
    import torch  # which the process that only hands out tests has no use for

    torch.manual_seed(0)
