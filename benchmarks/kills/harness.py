"""Start, kill, look around, go on: what is left after each kill, and whether the end is that of an undisturbed run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.kills.commands import COMMANDS, Command, write_graph

ROOT = Path(__file__).parents[2]
MARK = "HGDE_KILLS"
ORPHAN_SECONDS = 5.0


@dataclass
class Tally:
    """What happened to one command."""

    kills: int = 0
    chains: int = 0
    different: int = 0
    lost: list[str] = field(default_factory=list)
    orphans: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.different or self.lost or self.orphans or self.errors)


def start(arguments: list[str], mark: str) -> subprocess.Popen[str]:
    """``hgde`` as a process of its own; it and all its children carry the mark in their environment."""
    code = [sys.executable, "-c", "from hgde.cli.main import run; run()", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", MARK: mark}
    return subprocess.Popen(
        code, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def alive(mark: str) -> list[int]:
    """Processes that carry the mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and wanted in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
    return found


def finish(command: Command, folder: Path, mark: str) -> str | None:
    """Run to the end; the words of its failure, if it fails."""
    process = start(command.arguments(folder), mark)
    _, error = process.communicate(timeout=900)
    return None if process.returncode == 0 else (error or "")[-2000:]


def contents(folder: Path) -> dict[str, int]:
    """Files that are whole, each with how much is in it: records of a file of records, else 1.

    Raises:
        ValueError: for a file that is there and cannot be read.
    """
    from safetensors import safe_open

    whole: dict[str, int] = {}
    for path in sorted(folder.rglob("*")):
        if path.name.startswith(".") or not path.is_file():
            continue
        count = 1
        if path.suffix == ".json":
            content: Any = json.loads(path.read_text())
            count = 1 + len(content.get("records", ())) if isinstance(content, dict) else 1
        elif path.suffix == ".safetensors":
            with safe_open(path, framework="np") as stored:
                count = 1 if stored.keys() else 0
        whole[str(path.relative_to(folder))] = count
    return whole


def run_chain(
    command: Command, template: Path, folder: Path, random: Random, kills: int, span: float, tally: Tally
) -> Any:
    """Kill ``kills`` times on one folder, each time going on with what is there; then run to the end."""
    shutil.copytree(template, folder)
    before: dict[str, int] = contents(folder)
    for _ in range(kills):
        mark = uuid.uuid4().hex
        process = start(command.arguments(folder), mark)
        try:
            process.wait(timeout=random.uniform(0.05, 1.0) * span)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            tally.kills += 1
        process.wait()
        tally.orphans += _orphans(mark)
        try:
            now = contents(folder)
        except (ValueError, OSError) as error:
            tally.lost.append(f"unreadable: {error}"[:300])
            now = before
        tally.lost += [name for name, count in before.items() if now.get(name, 0) < count]
        before = now
    tally.chains += 1
    words = finish(command, folder, uuid.uuid4().hex)
    if words is not None:
        tally.errors.append(words)
        return None
    left = [str(path) for path in folder.rglob(".*.part")]
    if left:
        tally.errors.append(f"temporary files are left: {left[:3]}")
    return command.result(folder)


def _orphans(mark: str) -> int:
    until = time.monotonic() + ORPHAN_SECONDS
    while (left := alive(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    for number in left:
        with contextlib.suppress(OSError):
            os.kill(number, signal.SIGKILL)
    return len(left)


def make_template(folder: Path) -> None:
    """What every chain starts from: a graph in files, and a trained run to report on."""
    write_graph(folder)
    quick = "--width 3 --time 2 --epochs 10 --preset none --threads 1 --quiet"
    named = ["--edges", str(folder / "edges.csv"), "--nodes", str(folder / "nodes.csv")]
    process = start(["train", *named, *quick.split(), "--out", str(folder / "made")], "template")
    _, error = process.communicate(timeout=600)
    if process.returncode != 0:
        raise RuntimeError(error)


def attack(
    name: str, kills: int, place: Path, template: Path, seed: int, each: int = 5, deadline: float = float("inf")
) -> Tally:
    """Kill one command so many times, in chains of ``each``; every chain must end as the undisturbed run did."""
    command, random, tally = COMMANDS[name], Random(f"{seed}/{name}"), Tally()
    began = time.monotonic()
    undisturbed = place / f"{name}-undisturbed"
    shutil.copytree(template, undisturbed)
    words = finish(command, undisturbed, uuid.uuid4().hex)
    if words is not None:
        tally.errors.append(words)
        return tally
    span, expected = time.monotonic() - began, command.result(undisturbed)
    while tally.kills < kills and time.monotonic() < deadline:
        folder = place / f"{name}-{tally.chains}"
        result = run_chain(command, template, folder, random, min(each, kills - tally.kills), span, tally)
        tally.different += result is not None and result != expected
        shutil.rmtree(folder, ignore_errors=True)
        if len(tally.errors) > 3:
            break
    tally.seconds = round(time.monotonic() - began)
    return tally
