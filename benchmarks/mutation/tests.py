"""Which tests run which functions of the package, recorded once per test file, and which to run for a mutant."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutation.operators import Mutant
from benchmarks.mutation.processes import ROOT, TESTS, Overlay, call, enter

STORE = ROOT / "build" / "mutation" / "tests.jsonl"
PACKAGES = ("geometry", "solvers", "diffusion", "tasks", "training")
#: Folders of tests that are about a package, tried first. What else runs a function is known from the record.
OWN = {
    "geometry": ("geometry",),
    "solvers": ("solvers",),
    "diffusion": ("diffusion",),
    "tasks": ("tasks",),
    "training": ("training",),
}
#: All that is recorded; folders of tests that run everything for a long time would only be slow here.
RECORDED = (
    "geometry", "solvers", "diffusion", "tasks", "training", "pipeline/test_fit.py", "pipeline/test_folder.py",
    "models/test_hgde_model.py", "models/test_spaces.py", "experiments/test_free_baselines.py",
)  # fmt: skip
#: Tests longer than this are left out: they would be run for every mutant of what they touch.
LONGEST = 20.0
#: A function that fewer tests run is also tried with those that run anything of its file.
FEW = 20
#: Seconds of tests, by their recorded times, that a mutant has to survive.
BUDGET = 30.0
#: What stands behind the name of a test file that could not be imported.
IMPORT = " (import)"


@dataclass(frozen=True)
class Known:
    """A test that passes on the unchanged package: its seconds, and the functions of the package that it runs."""

    name: str
    seconds: float
    functions: frozenset[str]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]

    @property
    def folder(self) -> str:
        return self.file.rpartition("/")[0]


def test_files() -> list[Path]:
    found: list[Path] = []
    for name in RECORDED:
        place = TESTS / name
        found += sorted(place.rglob("test_*.py")) if place.is_dir() else [place] if place.exists() else []
    return found


def _worked() -> float:
    """Seconds of work of this process and of those it started and that have ended."""
    return sum(os.times()[:4])


class Recorder:
    """A pytest plug-in: time and functions of every test that passes. Those in ``known`` are not run again."""

    def __init__(self, package: Path, known: list[dict[str, Any]]) -> None:
        self.prefix = str(package) + "/"
        self.known = known
        self._functions: set[str] = set()
        self._seen: set[Any] = set()
        self._inside = tuple(f"{self.prefix}{name}/" for name in PACKAGES)

    def _trace(self, frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if code not in self._seen:
            self._seen.add(code)
            if code.co_filename.startswith(self._inside):
                self._functions.add(f"{code.co_filename[len(self.prefix) :]}:{code.co_qualname}")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        present = {item.nodeid for item in items}
        self.known = [test for test in self.known if test["name"] in present]
        before = {test["name"] for test in self.known}
        items[:] = [item for item in items if item.nodeid not in before]

    def pytest_runtest_logstart(self) -> None:
        self._functions, self._seen = set(), set()
        self._started, self._passed = _worked(), False
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.outcome == "passed":
            self._passed = True
        if report.failed:
            self._passed = False

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.settrace(None)
        threading.settrace(None)
        if self._passed:
            seconds = round(_worked() - self._started, 3)
            self.known.append({"name": nodeid, "seconds": seconds, "functions": sorted(self._functions)})


class Chosen:
    """A pytest plug-in: only some tests, in their order; remembers those that failed."""

    def __init__(self, names: Iterable[str]) -> None:
        self.place = {name: place for place, name in enumerate(names)}
        self.failures: list[str] = []
        self.passed: set[str] = set()
        self.ran = 0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.place), key=lambda i: self.place[i.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.ran += report.when == "call"
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)
        if report.failed:
            self.failures.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failures.append(f"{report.nodeid}{IMPORT}")


def run_pytest(files: Iterable[str], plugin: Any, *options: str) -> int:
    import pytest

    quiet = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "--no-header", "--tb=short")
    return int(pytest.main([*quiet, *options, *files], plugins=[plugin]))


def record(place: Overlay, log: Path) -> dict[str, list[Known]]:
    """The known tests by file; of files that have changed since, those whose names are new are run.

    A record is tracing, which is slow, and only proposes tests: those that kill are confirmed.
    """
    stored: dict[str, dict[str, Any]] = {}
    if STORE.exists():
        stored = {entry["file"]: entry for entry in map(json.loads, STORE.read_text().splitlines())}
    STORE.parent.mkdir(parents=True, exist_ok=True)
    result: dict[str, list[Known]] = {}
    for file in test_files():
        name = file.relative_to(ROOT).as_posix()
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        entry = stored.get(name)
        if entry is None or entry["digest"] != digest:
            started = time.perf_counter()
            before = entry["tests"] if entry is not None else []
            outcome, value = call(functools.partial(_record_file, place, name, before), log)
            entry = {"file": name, "digest": digest, "tests": value if outcome == "done" else []}
            with STORE.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")
            seconds = time.perf_counter() - started
            print(f"{name}: {len(entry['tests'])} tests, {seconds:.0f} s ({outcome})", flush=True)
        result[name] = [Known(t["name"], t["seconds"], frozenset(t["functions"])) for t in entry["tests"]]
    return result


def _record_file(place: Overlay, name: str, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    enter(place)
    import hgde  # noqa: F401  # importing it is what is recorded

    recorder = Recorder(place.package, before)
    run_pytest([name], recorder)
    return recorder.known


def select(mutant: Mutant, known: dict[str, list[Known]]) -> list[Known]:
    """The tests for a mutant: those that run its function; where they are few, then any function of its file.

    Tests of its own package come first, then the fastest; as many as fit into the budget.
    """
    package = mutant.path.partition("/")[0]
    own = tuple(f"tests/{folder}" for folder in OWN[package])
    every = [test for tests in known.values() for test in tests if test.seconds <= LONGEST]
    function = f"{mutant.path}:{mutant.function}"
    fitting = [test for test in every if function in test.functions]
    if len(fitting) < FEW:
        # Few, or those that happened to import it: decorators and their kin run once, for whoever comes first.
        fitting = [test for test in every if any(name.startswith(mutant.path + ":") for name in test.functions)]
    if not fitting:
        fitting = [test for test in every if test.folder in own or package in ("tasks", "training")]
    first = {test.name for test in fitting if function in test.functions}
    fitting.sort(key=lambda test: (test.name not in first, test.folder not in own, test.seconds))
    return _within_budget(fitting)


def _within_budget(fitting: list[Known]) -> list[Known]:
    chosen: list[Known] = []
    total = 0.0
    for test in fitting:
        if not chosen or total + test.seconds <= BUDGET:
            chosen.append(test)
            total += test.seconds
    return chosen


def run_tests(place: Overlay, chosen: list[Known], log: Path) -> dict[str, Any]:
    """In a child: import the package, then run the tests folder by folder, each in a process of its own."""
    enter(place)
    try:
        import hgde
        import hgde.pipeline  # noqa: F401  # whether it can be imported is the question
    except BaseException as error:
        return {"outcome": "killed", "by": f"import: {type(error).__name__}: {error}"[:200]}
    folders: dict[str, list[Known]] = {}
    for test in chosen:
        folders.setdefault(test.folder, []).append(test)
    ran = 0
    for tests in folders.values():
        result = _kill(tests, log)
        ran += result.pop("ran")
        if result:
            return {**result, "tests": ran}
    return {"outcome": "survived", "tests": ran}


def _kill(tests: list[Known], log: Path) -> dict[str, Any]:
    """Whether tests of one folder kill, and how many ran.

    A test that failed is run once more by itself. If it passes then, it had failed for another reason, such as the
    order of the tests or what else the machine does, and the others are tried without it.
    """
    ran = 0
    while tests:
        outcome, value = _limited(tests, log)
        if outcome != "done":
            return {"outcome": "timeout" if outcome == "timeout" else "killed", "by": f"{tests[0].folder} {outcome}",
                    "ran": ran}  # fmt: skip
        ran += value["ran"]
        failed = value["failed"]
        if failed is None:
            break
        alone = [test for test in tests if test.name == failed]
        outcome, value = _limited(alone, log) if alone else ("done", value)
        if outcome != "done" or value["failed"] is not None:
            return {"outcome": "killed", "by": failed, "ran": ran}
        tests = [test for test in tests if test.name != failed]
    return {"ran": ran}


def _limited(tests: list[Known], log: Path) -> tuple[str, Any]:
    clean = sum(test.seconds for test in tests)
    # The second limit is for what waits; on a machine that does much else, so does everything.
    return call(functools.partial(_run_folder, tests), log, 10.0 + 3.0 * clean, 600.0 + 60.0 * clean)


def failing(place: Overlay, names: Iterable[str], log: Path) -> list[str]:
    """Which of some tests do not pass on the unchanged package, or are gone.

    The name of a file that could not be imported stands for whether it can be.
    """
    folders: dict[str, list[str]] = {}
    for name in names:
        folders.setdefault(_file(name).rpartition("/")[0], []).append(name)
    failed: list[str] = []
    for folder, own in folders.items():
        outcome, value = call(functools.partial(_confirm_folder, place, own), log)
        if outcome != "done":
            raise RuntimeError(f"{folder}: tests on the unchanged package ended with {outcome}; see {log}")
        failed += value
    return failed


def forget(name: str) -> None:
    """Let the file of a test be recorded anew by the next run."""
    with STORE.open("a") as stream:
        stream.write(json.dumps({"file": _file(name), "digest": "", "tests": []}) + "\n")


def _file(name: str) -> str:
    return name.removesuffix(IMPORT).partition("::")[0]


def _confirm_folder(place: Overlay, names: list[str]) -> list[str]:
    enter(place)
    plugin = Chosen(names)
    run_pytest(dict.fromkeys(file for file in map(_file, names) if Path(file).exists()), plugin)
    return [name for name in names if (name in plugin.failures if name.endswith(IMPORT) else name not in plugin.passed)]


def _run_folder(tests: list[Known]) -> dict[str, Any]:
    plugin = Chosen(test.name for test in tests)
    code = run_pytest(dict.fromkeys(test.file for test in tests), plugin, "-x")
    failed = plugin.failures[0] if plugin.failures else None
    if failed is None and code != 0:
        failed = f"pytest ended with {code}"
    return {"failed": failed, "ran": plugin.ran}
