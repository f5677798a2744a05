"""Mistakes a user can make end in one clear sentence, not in a traceback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import typer


def friendly(command: Callable[..., None]) -> Callable[..., None]:
    """Print the message of an expected error and exit with 2 (130 after Ctrl-C)."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
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


def _is_expected(error: Exception) -> bool:
    """Errors the package raises on purpose are its own classes; anything else is a bug and keeps its traceback."""
    return type(error).__module__.startswith("hgde.") or isinstance(error, (FileNotFoundError, PermissionError))
