"""Jobs over processes: results on disk, failures in words, nothing lost when something is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from hgde.experiments.jobs import CAN_FORK, Crew, Job, first_come, one_thread, run_jobs, run_rounds
from hgde.experiments.store import Store, StoreError

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _spawned_processes_find_this_folder(monkeypatch):
    paths = [str(HERE), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.syspath_prepend(str(HERE))


def job(key, work="echo", seconds=None, **more):
    return Job("cell", key, f"job_kinds:{work}", {"run": {"seed": 1}}, more, seconds)


def test_results_are_kept_and_not_made_again(tmp_path):
    store = Store(tmp_path)
    first = run_jobs([job("a", value=1), job("b", value=2)], store, 0)
    assert [done.result["value"] for done in first] == [1, 2]
    again = run_jobs([job("a", value=1), job("b", value=3)], Store(tmp_path), 0)
    assert again[0].was_stored
    assert again[0].result == first[0].result
    assert not again[1].was_stored, "another value is another job"


def test_settings_that_name_a_default_are_the_same_job(tmp_path):
    plain, named = ({"model": {"name": "gcn"}}, {"model": {"name": "gcn"}, "training": {"lr": 0.01}})
    run_jobs([Job("cell", "a", "job_kinds:echo", plain)], Store(tmp_path), 0)
    done = run_jobs([Job("cell", "a", "job_kinds:echo", named)], Store(tmp_path), 0)
    assert done[0].was_stored
    other = {"model": {"name": "gcn"}, "training": {"lr": 0.02}}
    assert not run_jobs([Job("cell", "a", "job_kinds:echo", other)], Store(tmp_path), 0)[0].was_stored


def test_split_and_seed_are_part_of_a_job(tmp_path):
    store = Store(tmp_path)
    run_jobs([Job("cell", "a", "job_kinds:echo", {"run": {"seed": 1}})], store, 0)
    assert store.find(Job("cell", "a", "job_kinds:echo", {"run": {"seed": 2}})) is None
    assert store.find(Job("cell", "a", "job_kinds:echo", {"run": {"seed": 1, "threads": 2}})) is not None


def test_failures_are_recorded_with_their_words_and_done_again_only_when_asked(tmp_path):
    (done,) = run_jobs([job("a", "fail")], Store(tmp_path), 0)
    assert done.result is None
    assert done.failure == "ZeroDivisionError: on purpose"
    assert json.loads((tmp_path / "cell.json").read_text())["records"]["a"]["failure"] == done.failure
    assert run_jobs([job("a", "fail")], Store(tmp_path), 0)[0].was_stored
    assert not run_jobs([job("a", "fail")], Store(tmp_path), 0, retry=True)[0].was_stored


def test_processes_of_one_thread_each_survive_a_killed_one(tmp_path):
    jobs = [job("a", "threads"), job("b", "kill_self"), job("c", "process"), job("d", "process")]
    with Crew(2) as crew:
        done = {entry.job.key: entry for entry in run_jobs(jobs, Store(tmp_path), crew)}
        later = run_jobs([job("e", "process")], Store(tmp_path), crew)
    assert done["a"].result["threads"] == "1"
    assert "signal 9" in done["b"].failure
    assert done["c"].result["pid"] != os.getpid()
    assert later[0].result["pid"] in {done[key].result["pid"] for key in "cd"}, "a crew stays"


@pytest.mark.skipif(not CAN_FORK, reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_crew_that_begins_early_is_forked_and_what_replaces_it_is_not(tmp_path):
    with one_thread(), Crew(1) as crew:
        crew.begin()
        first = crew.members[0].process
        jobs = [job("a", "process"), job("b", "threads"), job("c", "kill_self"), job("d", "process")]
        done = {entry.job.key: entry for entry in run_jobs(jobs, Store(tmp_path), crew)}
        second = crew.members[0].process
    assert [type(process).__name__ for process in (first, second)] == ["ForkProcess", "SpawnProcess"]
    assert done["a"].result["pid"] == first.pid
    assert done["b"].result["threads"] == "1"
    assert "signal 9" in done["c"].failure
    assert done["d"].result["pid"] == second.pid


def test_cheap_jobs_come_first(tmp_path):
    order = []
    jobs = [Job("cell", name, "job_kinds:echo", {}, cost=cost) for name, cost in (("dear", 5), ("cheap", 1))]
    run_jobs(jobs, Store(tmp_path), 0, lambda done, *_: order.append(done.job.key))
    assert order == ["cheap", "dear"]


def in_rounds(name, count, cost=0.0, size=1):
    """So many rounds of so many jobs, each given the sum of the round before; a round that is not whole is the last."""
    total = 0
    for number in range(count):
        keys = [f"{name}-{number}-{k}" for k in range(size)]
        done = yield [Job("cell", key, "job_kinds:echo", {}, {"value": total + 1}, cost=cost) for key in keys]
        total = sum(one.result["value"] for one in done)
        if len(done) < size:
            break
    return total


def test_no_round_waits_for_those_of_others(tmp_path):
    order = []
    works = [in_rounds("dear", 2, cost=5), in_rounds("cheap", 3, cost=1, size=2)]
    found = run_rounds(works, Store(tmp_path), 0, lambda done, count, total: order.append((done.job.key, count, total)))
    assert found == [2, 14], "each round was given what came of the one before"
    assert [key.rpartition("-")[0] for key, _, _ in order] == [*["cheap-0"] * 2, *["cheap-1"] * 2, *["cheap-2"] * 2,
                                                               "dear-0", "dear-1"]  # fmt: skip
    assert order[0][1:] == (1, 3)
    assert order[-1][1:] == (8, 8)
    again = []
    works = [in_rounds("dear", 2, cost=5), in_rounds("cheap", 4, cost=1, size=2)]
    found = run_rounds(works, Store(tmp_path), 0, lambda done, *_: again.append(done.job.key))
    assert found == [2, 30]
    assert again == ["cheap-3-0", "cheap-3-1"], "the rest was on disk"


def test_rounds_over_processes(tmp_path):
    with Crew(2) as crew:
        found = run_rounds([in_rounds("a", 3, size=3), in_rounds("b", 1), in_rounds("c", 2)], Store(tmp_path), crew)
        assert len(crew.members) == 2
    assert found == [39, 1, 2]


def test_works_are_begun_when_others_are_through(tmp_path):
    begun = []

    def noted(name, cost):
        begun.append(name)
        return (yield from in_rounds(name, 2, cost))

    order = []
    works = [noted("a", 3), noted("b", 2), noted("c", 1)]
    run_rounds(works, Store(tmp_path), 0, lambda done, *_: order.append((done.job.key, len(begun))), at_once=2)
    assert order == [("b-0-0", 2), ("b-1-0", 3), ("c-0-0", 3), ("c-1-0", 3), ("a-0-0", 3), ("a-1-0", 3)]


def test_works_that_run_out_of_time_say_what_they_have(tmp_path):
    def slow():
        return (yield [job("first", "sleep", value=0.5), job("second")])

    begun, never = run_rounds([slow(), slow()], Store(tmp_path), 0, minutes=0.3 / 60, at_once=1)
    assert [done.job.key for done in begun] == ["first"]
    assert never is None


def test_time_that_is_up_ends_running_jobs_without_a_record(tmp_path):
    began = time.monotonic()
    done = run_jobs([job("a", "sleep", value=60)], Store(tmp_path), 1, minutes=3 / 60)
    assert done == []
    assert time.monotonic() - began < 30
    assert Store(tmp_path).find(job("a", "sleep", value=60)) is None


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    code = (
        "import sys; from hgde.experiments.jobs import Job, run_jobs; from hgde.experiments.store import Store\n"
        "if __name__ == '__main__':\n"
        f"    run_jobs([Job('cell', 'a', 'job_kinds:announce', {{}}, {{'folder': {str(tmp_path)!r}}})],"
        f" Store({str(tmp_path)!r}), 1)\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(code)
    parent = subprocess.Popen([sys.executable, str(script)], env=os.environ)
    announced = tmp_path / "pid"
    deadline = time.monotonic() + 60
    while not announced.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    worker = int(announced.read_text())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 10
    while _is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _is_running(worker)


def _is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "cell.json").write_text("{")
    with pytest.raises(StoreError, match=r"cell\.json is damaged"):
        Store(tmp_path).find(job("a"))


def test_threads_of_one_process_hold_it_together(tmp_path):
    for number in range(20):
        store, together = Store(tmp_path / str(number)), Barrier(8)

        def hold(_, store=store, together=together):
            together.wait()
            store.hold()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(hold, range(8)))  # raises what a thread raised


def test_whoever_comes_first_does_a_job(tmp_path):
    store, claim = Store(tmp_path), first_come()
    jobs = [job(f"number-{k}", value=k) for k in range(6)]
    with Crew(1) as crew, ThreadPoolExecutor(1) as thread:
        theirs = thread.submit(run_jobs, jobs, store, crew, claim=claim)
        mine = run_jobs(reversed(jobs), store, 0, claim=claim)
        both = [done.job.key for done in (*mine, *theirs.result()) if not done.was_stored]
    assert sorted(both) == [one.key for one in jobs]
    assert [done.was_stored for done in run_jobs(jobs, store, 0)] == [True] * 6
