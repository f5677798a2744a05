"""Jobs on a Slurm cluster, through submitit: one more kind of crew.

The command that was called stays on the login node, hands out jobs and writes their records; what each job needs and
gives passes through a folder that all machines see.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hgde.experiments.jobs import Claim, Crew, Done, Job, Waiting, always, one_thread
from hgde.sections import SettingsError

PERIOD = 0.5
LONGEST_MINUTES = 24 * 60
"""For jobs that have no limit of their own."""


def parse_options(text: str) -> dict[str, str | int]:
    """What Slurm is told: ``"partition=cpu,mem_gb=8"``, by the names that submitit gives them.

    >>> parse_options("partition=cpu, mem_gb=8")
    {'partition': 'cpu', 'mem_gb': 8}
    """
    options: dict[str, str | int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, is_given, value = (word.strip() for word in part.partition("="))
        if not (name and is_given and value):
            raise SettingsError(f"--slurm takes NAME=VALUE, several with commas between, got {part!r}")
        options[name] = int(value) if value.isdigit() else value
    return options


class ClusterCrew(Crew):
    """Up to ``count`` jobs in Slurm's queue at a time.

    Args:
        folder: for what passes between machines; all of them must see it.
        options: ``partition``, ``mem_gb``, ``cpus_per_task``, ``timeout_min`` and others of submitit's; ``cluster``
            is ``slurm``, or ``local`` for processes of this machine.
    """

    def __init__(self, count: int, folder: Path, options: Mapping[str, str | int]) -> None:
        try:
            import submitit
        except ImportError:
            raise SettingsError("--slurm needs submitit: pip install 'hgde[cluster]'") from None
        super().__init__(count)
        given = dict(options)
        try:
            self._executor = submitit.AutoExecutor(folder, cluster=str(given.pop("cluster", "slurm")))
            self._executor.update_parameters(**{"name": "hgde", "cpus_per_task": 1, **_named(given)})
        except (RuntimeError, ValueError, NameError, TypeError) as error:
            raise SettingsError(f"Slurm cannot be used as asked: {error}; see --slurm in docs/scale.md") from None
        self._minutes = int(given.get("timeout_min", LONGEST_MINUTES))

    def work(self, waiting: Waiting, deadline: float | None, most: int, claim: Claim = always) -> Iterator[Done]:
        running: dict[Any, tuple[Job, float]] = {}
        try:
            while waiting or running:
                if deadline is not None and time.monotonic() > deadline:
                    return
                while len(running) < self.count and (job := waiting.take(claim)) is not None:
                    running[self._submit(job)] = job, time.monotonic()
                for handle in [handle for handle in running if handle.done()]:
                    yield _outcome(handle, *running.pop(handle))
                time.sleep(PERIOD)
        finally:
            for handle in running:
                handle.cancel()

    def _submit(self, job: Job) -> Any:
        from hgde.experiments.work import do

        # The work itself keeps to its limit where it can; this is for work that does not look at the clock.
        limit = self._minutes if job.seconds is None else math.ceil((1.5 * job.seconds + 20) / 60)
        self._executor.update_parameters(timeout_min=min(limit, self._minutes))
        with one_thread():
            return self._executor.submit(do, job)


def _named(options: Mapping[str, str | int]) -> dict[str, str | int]:
    """Options by submitit's names: those that Slurm alone has are marked as such."""
    common = {"name", "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node"}
    return {name if name in common else f"slurm_{name}": value for name, value in options.items()}


def _outcome(handle: Any, job: Job, began: float) -> Done:
    """What came of a job, or why its process was ended."""
    error = handle.exception()
    if error is None:
        done: Done = handle.result()
        return Done(job, done.result, done.failure, done.seconds)
    words = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
    return Done(
        job, None, f"its process on the cluster (job {handle.job_id}) was ended: {words}", time.monotonic() - began
    )
