"""How far long work has come, in one style: a bar with remaining time in a terminal, plain lines elsewhere.

>>> with bar("squares", 3, quiet=True) as advance:
...     for k in range(3):
...         advance()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

SECONDS_BETWEEN_LINES = 30.0
"""Without a terminal, at most one line in this time."""

Advance = Callable[..., None]


def stderr_console() -> Console:
    """Where progress goes: never to the output that a script reads."""
    return Console(stderr=True, highlight=False)


def make_progress(*details: ProgressColumn, console: Console | None = None, quiet: bool = False) -> Progress:
    """The bars of the package: words, bar, count, ``details``, remaining time; nothing where there is no terminal."""
    console = console or stderr_console()
    return Progress(
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
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as shown:
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
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as shown:

        def arrived(name: str, done: int, total: int) -> None:
            if name not in rows:
                rows[name] = shown.add_task(name, total=total or None)
            shown.update(rows[name], completed=done)  # type: ignore[arg-type]  # a TaskID, made above
            lines.say(f"{name}: {done / 1e6:.1f} MB" + (f" of {total / 1e6:.1f} MB" if total else ""))

        yield arrived


class PlainLines:
    """Lines for logs, a few at most: the first after some time, then one in each such time."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self.console, self.quiet, self._last = console, quiet, time.monotonic()

    def say(self, words: str) -> None:
        if not self.quiet and time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self.console.print(words, soft_wrap=True, markup=False)
