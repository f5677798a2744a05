"""How far long work has come, in one style: a bar with remaining time in a terminal, plain lines elsewhere.

>>> with bar("squares", 3, quiet=True) as advance:
...     for k in range(3):
...         advance()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

SECONDS_BETWEEN_LINES = 30.0
"""Without a terminal, at most one line in this time."""

Advance = Callable[..., None]


class Bars(Progress):
    """rich's bars; where they are not drawn, nothing is written (rich before 14.1 ended an empty line)."""

    def stop(self) -> None:
        if not self.disable:
            super().stop()


def stderr_console() -> Console:
    """Where progress goes: never to the output that a script reads."""
    return Console(stderr=True, highlight=False)


def make_progress(*details: ProgressColumn, console: Console | None = None, quiet: bool = False) -> Progress:
    """The bars of the package: words, bar, count, ``details``, remaining time; nothing where there is no terminal."""
    console = console or stderr_console()
    return Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        *details,
        TimeRemainingColumn(compact=True),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    )


@contextmanager
def bar(words: str, total: int, *, quiet: bool = False, console: Console | None = None) -> Iterator[Advance]:
    """A bar for ``total`` pieces of work; gives a function to call after each (or with how many were done)."""
    console = console or stderr_console()
    lines = PlainLines(console, quiet or console.is_terminal)
    with make_progress(console=console, quiet=quiet) as shown:
        row, done = shown.add_task(words, total=total), 0

        def advance(count: int = 1) -> None:
            nonlocal done
            done += count
            shown.advance(row, count)
            lines.say(f"{words}: {done} of {total}")

        yield advance


@contextmanager
def working(words: str, *, quiet: bool = False, console: Console | None = None) -> Iterator[None]:
    """A sign of life for work of unknown length; nothing where there is no terminal."""
    console = console or stderr_console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Bars(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as shown:
        shown.add_task(words, total=None)
        yield


@contextmanager
def transfers(*, quiet: bool = False, console: Console | None = None) -> Iterator[Callable[[str, int, int], None]]:
    """Bars for files on their way: call it with name, bytes that arrived, and bytes in all (0: unknown)."""
    console = console or stderr_console()
    lines = PlainLines(console, quiet or console.is_terminal)
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    )  # fmt: skip
    rows: dict[str, object] = {}
    with Bars(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as shown:

        def arrived(name: str, done: int, total: int) -> None:
            if name not in rows:
                rows[name] = shown.add_task(name, total=total or None)
            shown.update(rows[name], completed=done)  # type: ignore[arg-type]  # a TaskID, made above
            lines.say(f"{name}: {done / 1e6:.1f} MB" + (f" of {total / 1e6:.1f} MB" if total else ""))

        yield arrived


class Stages:
    """Bars of long work that has several stages, one at a time, in lines where there is no terminal.

    >>> with Stages(quiet=True) as stages:
    ...     advance = stages.stage("runs", 2)
    ...     advance("first")
    ...     advance("second", failure="out of memory")
    """

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        self.console = console or stderr_console()
        self.quiet = quiet
        self._progress = make_progress(TextColumn("{task.fields[last]}"), console=self.console, quiet=quiet)
        self._lines = PlainLines(self.console, quiet or self.console.is_terminal)
        self._row: TaskID | None = None

    def __enter__(self) -> Stages:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, words: str) -> None:
        """A line of its own, above the bar."""
        if not self.quiet:
            self.console.print(words, soft_wrap=True, markup=False)

    def stage(self, words: str, total: int | None, seconds: float | None = None) -> Callable[..., None]:
        """Begin a stage of ``total`` pieces, or, where nobody knows how many, one that lasts for ``seconds``.

        Gives ``advance(name, failure=None)`` to call after each piece; a failure is said at once.
        """
        if self._row is not None:
            self._progress.remove_task(self._row)
        began, done = time.monotonic(), 0
        by_time = total is None and seconds is not None
        whole = float(seconds or 0) if by_time else total
        row = self._row = self._progress.add_task(words, total=whole, last="")

        def advance(name: str = "", failure: str | None = None) -> None:
            nonlocal done
            done += 1
            spent = time.monotonic() - began
            at = min(int(spent), int(seconds or 0)) if by_time else done
            if row in self._progress.task_ids:
                self._progress.update(row, completed=at, last=_shortened(name))
            if failure is not None:
                self.say(f"{name}: {failure}")
            left = (seconds or 0) - spent if by_time else spent / done * (total - done) if total else None
            about = "" if left is None or left <= 0 else f", about {_spoken_time(left)} left"
            self._lines.say(f"{words}: {done}" + (f" of {total}" if total else "") + about)

        return advance


def _shortened(name: str, most: int = 26) -> str:
    return name if len(name) <= most else "…" + name[1 - most :]


def _spoken_time(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 100
        else f"{seconds / 60:.0f} min"
        if seconds < 6000
        else f"{seconds / 3600:.1f} h"
    )


class PlainLines:
    """Lines for logs, a few at most: the first after some time, then one in each such time."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self.console, self.quiet, self._last = console, quiet, time.monotonic()

    def say(self, words: str) -> None:
        if not self.quiet and time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self.console.print(words, soft_wrap=True, markup=False)
