"""A run over mutants: which are drawn, what is known of them already, what became of each."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import time
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.mutation import operators, tests
from benchmarks.mutation.operators import Mutant
from benchmarks.mutation.processes import ROOT, Overlay, call

HERE = Path(__file__).parent
RESULTS = ROOT / "results" / "mutation.jsonl"
LOG = ROOT / "build" / "mutation" / "log.txt"
#: The key of the result that says whether the tests that killed pass on the unchanged package.
CONTROL = "control:killers"


@dataclass(frozen=True)
class Result:
    """What became of a mutant: ``killed`` by a test, ``timeout``, ``survived``, or ``unknown`` after all.

    ``digest`` is that of the function it was made of, ``selection`` that of the tests it was run against.
    """

    key: str
    digest: str
    path: str
    function: str
    operator: str
    line: int
    before: str
    after: str
    outcome: str
    by: str
    selection: str
    tests: int
    seconds: float
    repeated: bool = False
    """Whether a test that killed has failed a second time by itself; results of before that was asked have not."""

    @property
    def is_dead(self) -> bool:
        return self.outcome in ("killed", "timeout")

    @property
    def is_settled(self) -> bool:
        return self.outcome == "timeout" or (self.outcome == "killed" and self.repeated)


def digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:16]


def state(sources: dict[str, bytes]) -> str:
    """A digest of all files that are changed."""
    return digest("\n".join(f"{path} {digest(source)}" for path, source in sorted(sources.items())).encode())


def named(sources: dict[str, bytes]) -> dict[str, Mutant]:
    """The fixed mutants, by name."""
    made = {}
    for entry in tomllib.loads((HERE / "named.toml").read_text())["mutant"]:
        source, old = sources[entry["path"]], entry["old"].encode()
        if source.count(old) != 1:
            raise ValueError(
                f"named.toml: {entry['old']!r} occurs {source.count(old)} times in {entry['path']}, not once"
            )
        start = source.index(old)
        key = "named:" + hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:12]
        made[entry["name"]] = Mutant(
            entry["path"], entry["function"], "named", source.count(b"\n", 0, start) + 1, start, start + len(old),
            entry["new"].encode(), entry["old"], entry["new"], key, operators.scope_at(source, start),
        )  # fmt: skip
    return made


def drawn(sources: dict[str, bytes], package: str, size: int, seed: int) -> tuple[list[Mutant], int]:
    """The sample of a package and the number it was drawn from. A larger sample contains every smaller one."""
    every = [m for path in sources if path.startswith(package + "/") for m in operators.mutants(path, sources[path])]
    every.sort(key=lambda mutant: hashlib.sha256(f"{seed}:{mutant.key}".encode()).digest())
    valid = (mutant for mutant in every if operators.is_valid(mutant, sources[mutant.path]))
    return list(itertools.islice(valid, size)), len(every)


def stored() -> dict[tuple[str, str], Result]:
    """The last result of every mutant of every version of its function."""
    if not RESULTS.exists():
        return {}
    results = (Result(**json.loads(line)) for line in RESULTS.read_text().splitlines())
    return {(result.key, result.digest): result for result in results}


def remarks() -> dict[tuple[str, str, str], tuple[str, str]]:
    """``(path, before, after) -> ("equivalent" or "accepted", reason)``."""
    table = tomllib.loads((HERE / "equivalent.toml").read_text())
    return {
        (entry["path"], entry["before"], entry["after"]): (kind, entry["reason"])
        for kind in ("equivalent", "accepted")
        for entry in table.get(kind, [])
    }


class Campaign:
    """Runs mutants in an overlay, one at a time, and keeps every result at once."""

    def __init__(self, place: Overlay, sources: dict[str, bytes], known: dict[str, list[tests.Known]]) -> None:
        self.place, self.sources, self.known = place, sources, known
        self.results = stored()
        self._stamp = 0
        self._remarks = remarks()
        self._digests = {name: digest((ROOT / name).read_bytes()) for name in known}

    def run(self, mutants: Iterable[Mutant], until: float, *, again: bool = False) -> None:
        """Run those whose result is not known, until a moment; ``again``: and kills that were not repeated.

        Survivors are run again when their tests changed, those that were accepted are not.
        """
        for mutant in mutants:
            if time.monotonic() > until:
                return
            remark = self._remarks.get((mutant.path, mutant.before, mutant.after), ("",))[0]
            before = self.results.get((mutant.key, mutant.scope))
            is_done = before is not None and (before.is_settled or (before.is_dead and not again))
            if remark == "equivalent" or is_done or (before is not None and remark == "accepted"):
                continue
            chosen = tests.select(mutant, self.known)
            selection = self._selection(chosen)
            if before is not None and before.outcome == "survived" and before.selection == selection:
                continue
            self._keep(self.run_one(mutant, chosen, selection))

    def run_one(self, mutant: Mutant, chosen: list[tests.Known], selection: str) -> Result:
        source = self.sources[mutant.path]
        self._stamp += 1
        started = time.monotonic()
        with LOG.open("a") as stream:
            stream.write(f"\n=== {mutant.key} {mutant.path}:{mutant.line} {mutant.before} => {mutant.after}\n")
        with self.place.changed(mutant.path, mutant.apply(source), self._stamp):
            outcome, value = call(functools.partial(tests.run_tests, self.place, chosen, LOG), LOG, cpu=60.0)
        if outcome != "done":
            value = {"outcome": "timeout" if outcome == "timeout" else "killed", "by": outcome}
        return Result(
            mutant.key, mutant.scope, mutant.path, mutant.function, mutant.operator, mutant.line, mutant.before,
            mutant.after, value["outcome"], value.get("by", ""), selection, value.get("tests", 0),
            round(time.monotonic() - started, 2), value["outcome"] == "killed",
        )  # fmt: skip

    def confirm(self, mutants: Iterable[Mutant]) -> None:
        """Run every test that killed one of these on the unchanged package: it has to pass, or its kills mean nothing.

        What a test that fails has killed is not known any more, and its file is recorded anew by the next run.
        """
        known = [self.results.get((mutant.key, mutant.scope)) for mutant in mutants]
        kills = [result for result in known if result is not None and result.by.startswith("tests/")]
        kills = [result for result in kills if result.outcome == "killed" and ".py" in result.by]
        names = sorted({result.by for result in kills})
        failed = set(tests.failing(self.place, names, LOG))
        for result in kills:
            if result.by in failed:
                self._keep(replace(result, outcome="unknown"))
        for name in failed:
            tests.forget(name)
        print(f"{len(names) - len(failed)} of {len(names)} tests that killed pass on the unchanged package", flush=True)
        outcome, by = "killed" if failed else "survived", min(failed, default="")
        self._keep(
            Result(
                CONTROL, state(self.sources), "", "", "control", 0, "nothing", "nothing", outcome, by, "", len(names), 0
            )
        )

    def _selection(self, chosen: list[tests.Known]) -> str:
        names = sorted(f"{test.name} {self._digests[test.file]}" for test in chosen)
        return digest("\n".join(names).encode())

    def _keep(self, result: Result) -> None:
        self.results[result.key, result.digest] = result
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        with RESULTS.open("a") as stream:
            stream.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
        change = result.by if result.is_dead else f"{result.before}  =>  {result.after}"
        print(f"{result.outcome:8} {result.seconds:6.1f} s  {result.path}:{result.line}  {change}", flush=True)
