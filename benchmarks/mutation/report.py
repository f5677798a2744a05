"""docs/mutation.md, made of the stored results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from benchmarks.mutation import campaign, tests
from benchmarks.mutation.campaign import Result
from benchmarks.mutation.operators import Mutant
from benchmarks.mutation.processes import ROOT

PAGE = ROOT / "docs" / "mutation.md"
_HEAD = """# Mutation testing

Is there a test that notices when the code is wrong? `make mutation` changes the packages `geometry`, `solvers`,
`diffusion`, `tasks` and `training` in one place at a time and runs the tests that execute that place. A mutant is
*killed* when a test fails (or never ends); one that *survives* is a mistake that the tests would let through.

    make mutation                                             # 60 mutants per package, and the named ones
    python -m benchmarks.mutation --size 200 --minutes 30     # more, for half an hour; the next run goes on from there
    python -m benchmarks.mutation --report                    # this page again, from the stored results

This page is written by that command. Results are appended to `results/mutation.jsonl`, by mutant and by the content of
the function it is in: a run that is stopped goes on, a function that is changed is tried anew, a survivor is tried
again when its tests have changed.

## How

* **What is changed** (`benchmarks/mutation/operators.py`): arithmetic and its signs, comparisons and their boundaries,
  constants (by one, doubled, `True` and `False`), conditions negated, `and` and `or`, neighbouring arguments of one
  type exchanged, keyword arguments left out, twins (`min`/`max`, `sqrt`/`rsqrt`, `rows`/`indices`, `expmap`/`logmap`,
  ...), `detach`, `no_grad`, `abs` and `clone` left out, statements without a result left out, returned values doubled
  or negated. Not changed: annotations, decorators, words of errors and of logging, `__repr__`, where and how tensors
  are kept (`device`, `dtype`), and the compiled kernels.
* **Which ones**: a random sample per package, drawn by a seeded hash of each mutant; a larger sample contains every
  smaller one.
* **Which tests**: those that execute the changed function (recorded once per test file; where they are fewer than
  {few}, then those that execute anything of its file), those of the package's own folder first, then the fastest, up to
  {budget:.0f} seconds of work by the record. Tests of more than {longest:.0f} seconds and those of the command line,
  the reports and most experiments are left out. More tests could only kill more.
* **How they are run**: a parent that has imported torch once forks a child for every mutant; the child imports the
  package from a copy in a temporary folder. The limit is three times the recorded seconds of work, and ten more.
* **What counts as killed**: the test fails twice, the second time by itself. In the end every test that killed is run
  on the unchanged package; what was killed by one that fails there is tried again.
* **Equivalent mutants** do the same as the original; they are listed with reasons
  (`benchmarks/mutation/equivalent.toml`) and not counted. *Accepted* ones are counted as survivors: a test could
  notice them, and the reason says why none does.
"""


@dataclass
class Tally:
    """A package's sample: its results, equivalents with reasons, and those not run on their function as it is."""

    drawn_from: int = 0
    results: list[Result] = field(default_factory=list)
    equivalent: list[tuple[Mutant, str]] = field(default_factory=list)
    missing: int = 0

    @property
    def survivors(self) -> list[Result]:
        return [result for result in self.results if not result.is_dead]

    @property
    def rate(self) -> float:
        return sum(result.is_dead for result in self.results) / max(len(self.results), 1)


def write(sources: dict[str, bytes], size: int, seed: int) -> None:
    stored, remarks = campaign.stored(), campaign.remarks()
    tallies = {package: _tally(sources, package, size, seed, stored, remarks) for package in tests.PACKAGES}
    parts = [_HEAD.format(budget=tests.BUDGET, longest=tests.LONGEST, few=tests.FEW), *_rates(tallies, size, seed)]
    parts += _named(sources, stored)
    parts += _control(sources, stored)
    parts += _survivors(tallies, remarks)
    parts += _equivalent(tallies)
    PAGE.write_text("\n".join(parts) + "\n")
    for package, tally in tallies.items():
        print(f"{package:10} {tally.rate:6.1%} of {len(tally.results)} killed, {len(tally.survivors)} survived, "
              f"{len(tally.equivalent)} equivalent, {tally.missing} not run")  # fmt: skip


def _tally(
    sources: dict[str, bytes],
    package: str,
    size: int,
    seed: int,
    stored: dict[tuple[str, str], Result],
    remarks: dict[tuple[str, str, str], tuple[str, str]],
) -> Tally:
    sample, total = campaign.drawn(sources, package, size, seed)
    tally = Tally(total)
    for mutant in sample:
        kind, reason = remarks.get((mutant.path, mutant.before, mutant.after), ("", ""))
        result = stored.get((mutant.key, mutant.scope))
        if kind == "equivalent":
            tally.equivalent.append((mutant, reason))
        elif result is None or result.outcome == "unknown":
            tally.missing += 1
        else:
            tally.results.append(result)
    return tally


def _rates(tallies: dict[str, Tally], size: int, seed: int) -> list[str]:
    lines = [
        "## Rates",
        "",
        f"A sample of {size} per package, seed {seed}. Rate: killed, or stopped by the limit, among those that were "
        "run and are not equivalent.",
        "",
        "| package | mutants in all | run | killed | by the limit | survived | equivalent | not run | rate |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for package, tally in tallies.items():
        count = Counter(result.outcome for result in tally.results)
        lines.append(
            f"| {package} | {tally.drawn_from} | {len(tally.results)} | {count['killed']} | {count['timeout']} "
            f"| {count['survived']} | {len(tally.equivalent)} | {tally.missing} | {tally.rate:.1%} |"
        )
    every = [result for tally in tallies.values() for result in tally.results]
    dead = sum(result.is_dead for result in every)
    share = dead / max(len(every), 1)
    lines += ["", f"All together: {dead} of {len(every)}, {share:.1%}."]
    once = sum(result.outcome == "killed" and not result.repeated for result in every)
    if once:
        lines.append(f"Of those killed, {once} were killed before a second failure was asked for.")
    return [*lines, ""]


def _named(sources: dict[str, bytes], stored: dict[tuple[str, str], Result]) -> list[str]:
    lines = ["## Named mutants", "", "Mistakes that no test noticed once; all of them have to be.", ""]
    lines += ["| mistake | outcome | by |", "| --- | --- | --- |"]
    for name, mutant in campaign.named(sources).items():
        result = stored.get((mutant.key, mutant.scope))
        if result is None or result.outcome == "unknown":
            lines.append(f"| {name} | not run | |")
        else:
            outcome = result.outcome if result.is_dead else "**survived**"
            lines.append(f"| {name} | {outcome} | {_cell(_short(result.by))} |")
    return [*lines, ""]


def _control(sources: dict[str, bytes], stored: dict[tuple[str, str], Result]) -> list[str]:
    result = stored.get((campaign.CONTROL, campaign.state(sources)))
    if result is None:
        return ["**Control**: not run on these sources.", ""]
    words = "pass" if result.outcome == "survived" else f"do **not** all pass (`{_short(result.by)}`)"
    return [f"**Control**: the {result.tests} tests that killed {words} on the unchanged package.", ""]


def _survivors(tallies: dict[str, Tally], remarks: dict[tuple[str, str, str], tuple[str, str]]) -> list[str]:
    lines = ["## Survivors", ""]
    for package, tally in tallies.items():
        if not tally.survivors:
            continue
        lines += [f"### {package}", ""]
        for result in tally.survivors:
            _, reason = remarks.get((result.path, result.before, result.after), ("", "no test notices it"))
            lines += [_change(result.path, result.function, result.before, result.after), f"  {reason}", ""]
    return lines if len(lines) > 2 else [*lines, "None.", ""]


def _equivalent(tallies: dict[str, Tally]) -> list[str]:
    lines = ["## Equivalent mutants of the sample", ""]
    for tally in tallies.values():
        for mutant, reason in tally.equivalent:
            lines += [_change(mutant.path, mutant.function, mutant.before, mutant.after), f"  {reason}", ""]
    return lines if len(lines) > 2 else [*lines, "None.", ""]


def _change(path: str, function: str, before: str, after: str) -> str:
    place = f"`{path}`" + (f", `{function}`" if function else "")
    return f"* {place}:\n  `{before}`\n  → `{after}`\n"


def _short(test: str) -> str:
    return test.removeprefix("tests/")


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""
