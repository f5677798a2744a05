"""Mistakes a user can make end in one clear sentence, not in a traceback; so do warnings."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer


def friendly(command: Callable[..., None]) -> Callable[..., None]:
    """Print the message of an expected error and exit with 2 (130 after Ctrl-C)."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _warnings_in_one_line():
                command(*args, **kwargs)
        except KeyboardInterrupt:
            typer.secho("stopped", fg="yellow", err=True)
            raise typer.Exit(130) from None
        except (ValueError, OSError, RuntimeError) as error:
            if not _is_expected(error):
                raise
            typer.secho(f"error: {error}", fg="red", err=True)
            raise typer.Exit(2) from None

    return run


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show the package's own warnings as sentences, without the place in the code that they come from."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if category.__module__.startswith("hgde."):
                typer.secho(f"warning: {message}", fg="yellow", err=True)
            else:
                usual(message, category, *place, **more)

        warnings.showwarning = show
        yield


_ABOUT_FILES = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)


def _is_expected(error: Exception) -> bool:
    """Errors the package raises on purpose are its own classes; anything else is a bug and keeps its traceback."""
    return type(error).__module__.startswith("hgde.") or isinstance(error, _ABOUT_FILES)
