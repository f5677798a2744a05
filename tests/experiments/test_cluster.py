"""Jobs through submitit: its local executor starts real processes, with the files that pass to and from Slurm's."""

import os
import time
from pathlib import Path

import pytest

from hgde.experiments.cluster import ClusterCrew, parse_options
from hgde.experiments.jobs import Job, run_jobs
from hgde.experiments.store import Store
from hgde.sections import SettingsError

HERE = Path(__file__).parent


@pytest.fixture
def crew(tmp_path, monkeypatch):
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'hgde[cluster]'")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    return ClusterCrew(2, tmp_path / "slurm", {"cluster": "local"})


def job(key, work, seconds=None, **more):
    return Job("cell", key, f"job_kinds:{work}", {"run": {"seed": 1}}, more, seconds)


@pytest.mark.slow
def test_results_failures_and_killed_processes(tmp_path, crew):
    jobs = [job("a", "threads"), job("b", "kill_self"), job("c", "fail"), job("d", "process")]
    done = {entry.job.key: entry for entry in run_jobs(jobs, Store(tmp_path), crew)}
    assert done["a"].result == {"threads": "1"}
    assert "was ended" in done["b"].failure
    assert done["c"].failure == "ZeroDivisionError: on purpose"
    assert done["d"].result["pid"] != os.getpid()
    assert run_jobs(jobs, Store(tmp_path), crew)[3].was_stored


def test_time_that_is_up_cancels_jobs_without_a_record(tmp_path, crew):
    began = time.monotonic()
    assert run_jobs([job("a", "sleep", value=60)], Store(tmp_path), crew, minutes=3 / 60) == []
    assert time.monotonic() - began < 30


def test_what_slurm_is_told():
    assert parse_options("") == {}
    assert parse_options("partition=gpu , timeout_min=90") == {"partition": "gpu", "timeout_min": 90}
    with pytest.raises(SettingsError, match="'partition'"):
        parse_options("partition")


def test_a_machine_without_slurm_says_so(tmp_path, crew):
    with pytest.raises(SettingsError, match="Slurm cannot be used"):
        ClusterCrew(2, tmp_path, {"cluster": "slurm"})
    with pytest.raises(SettingsError, match="no_such_option"):
        ClusterCrew(2, tmp_path, {"cluster": "local", "no_such_option": 1})
