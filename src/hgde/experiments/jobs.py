"""Many pieces of work over processes, each finished one on disk at once, so that anything stopped goes on.

Every piece is a :class:`Job`; what it does is named by ``work`` (see :mod:`hgde.experiments.work`). Processes have
one thread each, and end when their parent ends, however that happens. They are spawned, or forked where their parent
has done nothing yet (:meth:`Crew.begin`). A process that is killed costs the job it was at, which is recorded as
failed, and nothing else.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from hgde.experiments.store import Store

logger = logging.getLogger(__name__)

JOBS_PER_PROCESS = 60
"""Then a new process takes over, so that memory does not grow."""

CAN_FORK = sys.platform == "linux"
"""Elsewhere libraries of the system do not survive it."""
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """One piece of work and where its record goes.

    Args:
        cell: the file of records, a path below the store without ending.
        key: the record's name in that file, such as ``split-0/seed-3`` or ``trial-04``.
        work: what to do: a name of :data:`hgde.experiments.work.WORK`, or ``"package.module:function"``.
        settings: nested settings of the run, seed and split included.
        more: what the work takes besides, as plain values; part of what makes two jobs the same.
        seconds: how long it may take; longer work is ended and recorded as failed. Not part of what it is.
        cost: what it is expected to cost, in any unit; the cheapest job is started first.
    """

    cell: str
    key: str
    work: str
    settings: Mapping[str, Any]
    more: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    cost: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.cell}/{self.key}"


@dataclass(frozen=True)
class Done:
    """What came of a job: its result, or why there is none."""

    job: Job
    result: dict[str, Any] | None
    failure: str | None = None
    seconds: float = 0.0
    was_stored: bool = False


OnDone = Callable[[Done, int, int], None]
Claim = Callable[[Job], bool]
"""Whether a job is still to be had, asked just before it is begun."""


def first_come() -> Claim:
    """For several calls of :func:`run_jobs` on the same jobs, in threads: whoever comes to a job first does it.

    >>> claim, job = first_come(), Job("cell", "seed-00", "train", {})
    >>> claim(job), claim(job)
    (True, False)
    """
    taken: set[str] = set()
    lock = threading.Lock()

    def claim(job: Job) -> bool:
        with lock:
            is_free = job.name not in taken
            taken.add(job.name)
        return is_free

    return claim


def always(job: Job) -> bool:
    return True


T = TypeVar("T")
Rounds = Generator[list[Job], list[Done], T]
"""Work in rounds: it yields the jobs of a round, is sent what came of them, in their order, and returns its result.
Given less than it asked for, because time was up or others do the rest, it has to come to its end."""


def run_jobs(
    jobs: Iterable[Job],
    store: Store,
    workers: int | Crew = 1,
    on_done: OnDone | None = None,
    minutes: float | None = None,
    retry: bool = False,
    fresh: bool = False,
    claim: Claim = always,
) -> list[Done]:
    """Do what is not on disk yet and return everything, stored results included, in the order of ``jobs``.

    Arguments are those of :func:`run_rounds`.
    """
    (outcomes,) = run_rounds([_one_round(list(jobs))], store, workers, on_done, minutes, retry, fresh, claim)
    return outcomes or []


def _one_round(jobs: list[Job]) -> Rounds[list[Done]]:
    return (yield jobs)


def run_rounds(
    works: Iterable[Rounds[T]],
    store: Store,
    workers: int | Crew = 1,
    on_done: OnDone | None = None,
    minutes: float | None = None,
    retry: bool = False,
    fresh: bool = False,
    claim: Claim = always,
    at_once: int | None = None,
) -> list[T | None]:
    """Several works in rounds, side by side: no round waits for those of others. Their results, in their order.

    Args:
        workers: how many processes, or a crew that is there already; 0 works in this process (tests, debuggers).
        on_done: called with each finished job, how many are done and how many there are so far.
        minutes: after so long no job is started, and running ones are ended without a record.
        retry: do jobs again that are recorded as failed.
        fresh: a new process for every job, where memory is measured.
        claim: jobs that it denies are left to others, and are not returned.
        at_once: so many works are begun, the next when one is through; None for all. The result of one that was
            never begun is None.
    """
    store.hold()
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    progress, most = _Progress(works, store, retry, at_once), 1 if fresh else JOBS_PER_PROCESS
    for count, done in enumerate(_work(progress.waiting, workers, deadline, most, claim), 1):
        store.add(done)
        progress.hear(done)
        if on_done is not None:
            on_done(done, count, progress.total)
    return progress.end()


class Waiting:
    """Jobs that are not begun, the cheapest first; more may come while others are worked on."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._jobs: list[Job] = []
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        self._jobs = sorted([*self._jobs, *jobs], key=lambda job: job.cost)

    def take(self, claim: Claim) -> Job | None:
        """The next that is still to be had."""
        while self._jobs:
            job = self._jobs.pop(0)
            if claim(job):
                return job
        return None

    def __len__(self) -> int:
        return len(self._jobs)


@dataclass
class _Begun(Generic[T]):
    """A work that was begun: the jobs of its round, and what came of them so far."""

    number: int
    rounds: Rounds[T]
    asked: list[Job] = field(default_factory=list)
    done: dict[str, Done] = field(default_factory=dict)

    @property
    def outcomes(self) -> list[Done]:
        return [self.done[job.name] for job in self.asked if job.name in self.done]


class _Progress(Generic[T]):
    """How far several works are, and which jobs they wait for."""

    def __init__(self, works: Iterable[Rounds[T]], store: Store, retry: bool, at_once: int | None) -> None:
        self._store, self._retry, self._at_once = store, retry, at_once
        self._not_begun = [_Begun(number, rounds) for number, rounds in enumerate(works)][::-1]
        self._results: list[T | None] = [None] * len(self._not_begun)
        self._begun: list[_Begun[T]] = []
        self._owners: dict[str, _Begun[T]] = {}
        self.waiting, self.total = Waiting(), 0
        self._begin_more()

    def hear(self, done: Done) -> None:
        """A job is done: its work goes on if that was the last of a round."""
        work = self._owners.pop(done.job.name)
        work.done[done.job.name] = done
        if all(job.name in work.done for job in work.asked):
            self._go_on(work)
            self._begin_more()

    def end(self) -> list[T | None]:
        """The results. Works that are not through get what there is of their round."""
        for work in list(self._begun):
            while not self._is_over(work, work.outcomes):
                work.done = {}
        for work in self._not_begun:
            work.rounds.close()
        return self._results

    def _begin_more(self) -> None:
        while self._not_begun and (self._at_once is None or len(self._begun) < self._at_once):
            work = self._not_begun.pop()
            self._begun.append(work)
            if not self._is_over(work, None):
                self._find_stored(work)

    def _go_on(self, work: _Begun[T]) -> None:
        if not self._is_over(work, work.outcomes):
            self._find_stored(work)

    def _is_over(self, work: _Begun[T], outcomes: list[Done] | None) -> bool:
        """Whether a work came to its end by what it is sent; if not, it has asked for another round."""
        try:
            work.asked = work.rounds.send(outcomes)  # type: ignore[arg-type]  # None begins a generator
        except StopIteration as end:
            self._results[work.number] = end.value
            self._begun.remove(work)
            return True
        work.done = {}
        return False

    def _find_stored(self, work: _Begun[T]) -> None:
        missing = []
        for job in work.asked:
            stored = self._store.find(job)
            if stored is not None and not (self._retry and stored.failure is not None):
                work.done[job.name] = stored
            elif job.name not in self._owners:
                missing.append(job)
                self._owners[job.name] = work
        self.waiting.add(missing)
        self.total += len(missing)
        if not missing:
            self._go_on(work)


def _work(waiting: Waiting, workers: int | Crew, deadline: float | None, most: int, claim: Claim) -> Iterator[Done]:
    with hired(workers) as crew:
        if crew.count == 0:
            yield from _in_this_process(waiting, deadline, claim)
        elif waiting:
            yield from crew.work(waiting, deadline, most, claim)


def hired(workers: int | Crew) -> AbstractContextManager[Crew]:
    """So many processes for as long as the context lasts, or a crew that is there already and stays."""
    return nullcontext(workers) if isinstance(workers, Crew) else Crew(workers)


def _in_this_process(waiting: Waiting, deadline: float | None, claim: Claim) -> Iterator[Done]:
    from hgde.experiments.work import do

    while (deadline is None or time.monotonic() <= deadline) and (job := waiting.take(claim)) is not None:
        yield do(job)


class _Worker:
    """A process, the pipe to it, and the job it is at."""

    def __init__(self, how: str = "spawn") -> None:
        from hgde.experiments import worker

        context: Any = multiprocessing.get_context(how)
        self.pipe, theirs = context.Pipe()
        # Not a daemon: daemons may not have children, and work may want some.
        self.process: BaseProcess = context.Process(target=worker.serve, args=(theirs, os.getpid()), daemon=False)
        with one_thread():
            self.process.start()
        theirs.close()
        self.job: Job | None = None
        self.started = 0.0
        self.count = 0

    def give(self, job: Job) -> None:
        self.job, self.started, self.count = job, time.monotonic(), self.count + 1
        self.pipe.send(job)

    def is_overdue(self) -> bool:
        # The work itself keeps to its limit where it can; this is for work that does not look at the clock.
        limit = None if self.job is None else self.job.seconds
        return limit is not None and time.monotonic() - self.started > 1.5 * limit + 20

    def end(self, politely: bool) -> None:
        if politely:
            try:
                self.pipe.send(None)
            except OSError:
                politely = False
        if not politely:
            self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


class Crew:
    """Processes that stay for several calls of :func:`run_jobs`; starting one takes seconds."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.members: list[_Worker] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.dismiss(self.members)

    def begin(self) -> None:
        """Start the processes now, before their parent does anything but load libraries, inside :func:`one_thread`.

        Where processes can be forked, call it when libraries are loaded: forked ones need not load them again, which
        takes longer than a short job. Elsewhere call it first, and all load theirs at the same time.
        """
        how = "fork" if CAN_FORK else "spawn"
        self.members += [_Worker(how) for _ in range(self.count - len(self.members))]

    def work(self, waiting: Waiting, deadline: float | None, most: int, claim: Claim = always) -> Iterator[Done]:
        """Every job with what came of it, in the order they finish; a process does ``most`` of them at most."""
        workers = self.members
        try:
            while waiting or any(worker.job for worker in workers):
                if deadline is not None and time.monotonic() > deadline:
                    return
                while (free := self._free_worker(len(waiting))) is not None:
                    job = waiting.take(claim)
                    if job is None:
                        break
                    free.give(job)
                busy = [worker for worker in workers if worker.job is not None]
                if not busy:
                    return  # others have claimed what was left
                waited: list[Any] = [worker.pipe for worker in busy]
                ready = wait(waited + [worker.process.sentinel for worker in busy], timeout=0.5)
                for worker in busy:
                    outcome = _outcome(worker, ready)
                    if outcome is None:
                        continue
                    spent = time.monotonic() - worker.started
                    worker.job = None
                    if not worker.process.is_alive() or worker.count >= most:
                        self.dismiss([worker])
                    yield Done(*outcome, spent)
        finally:
            self.dismiss([worker for worker in workers if worker.job is not None])

    def _free_worker(self, wanted: int) -> _Worker | None:
        """A process without a job, a new one if need be; None where all are busy or there is nothing to do."""
        free = next((worker for worker in self.members if worker.job is None), None)
        if wanted and free is None and len(self.members) < self.count:
            free = _Worker()
            self.members.append(free)
        return free if wanted else None

    def dismiss(self, workers: Iterable[_Worker]) -> None:
        for worker in list(workers):
            self.members.remove(worker)
            worker.end(politely=worker.job is None and worker.process.is_alive())


def _outcome(worker: _Worker, ready: list[Any]) -> tuple[Job, dict[str, Any] | None, str | None] | None:
    """What a worker has to say: a result, a failure, or that it is gone; ``None`` while it works."""
    job = worker.job
    assert job is not None
    pipe: Connection = worker.pipe
    if pipe in ready or pipe.poll():
        try:
            result, failure = pipe.recv()
        except (EOFError, OSError):
            worker.process.join(5)
            return job, None, _how_it_ended(worker.process)
        return job, result, failure
    if not worker.process.is_alive():
        return job, None, _how_it_ended(worker.process)
    if worker.is_overdue():
        worker.process.kill()
        worker.process.join()
        return job, None, f"ended after {time.monotonic() - worker.started:.0f} s, it was given {job.seconds:.0f}"
    return None


def _how_it_ended(process: BaseProcess) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        hint = " (out of memory?)" if code == -9 else ""
        return f"its process was ended by signal {-code}{hint}"
    return f"its process exited with code {code}"


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes started inside have one thread: two runs use two cores better than one run can."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
