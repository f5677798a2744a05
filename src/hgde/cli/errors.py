"""Mistakes a user can make end in one clear sentence, not in a traceback; so do warnings."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer

from hgde.registry import RegistryError, untrusted


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
        except BrokenPipeError:
            # Whoever read the output (head, less) has seen enough; what is left in the buffer goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (ValueError, OSError, RuntimeError, MemoryError) as error:
            words = _words(error)
            if words is None:
                raise
            typer.secho(f"error: {words}", fg="red", err=True)
            raise typer.Exit(2) from None

    return run


def on_a_run(command: Callable[..., None]) -> Callable[..., None]:
    """For commands that open a run folder, which may come from elsewhere: nothing it names is imported.

    Gives the command the option ``--import``, by which the user says which modules may be.
    """
    own = inspect.signature(command, eval_str=True)
    option = Annotated[
        list[str] | None,
        typer.Option("--import", metavar="MODULE", help="Import this trusted module first, if the run refers to it."),
    ]
    parameter = inspect.Parameter("modules", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)

    @functools.wraps(command)
    def run(*args: Any, modules: list[str] | None = None, **kwargs: Any) -> None:
        for module in modules or []:
            import_named(module)
        with untrusted():
            command(*args, **kwargs)

    run.__signature__ = own.replace(parameters=[*own.parameters.values(), parameter])  # type: ignore[attr-defined]  # functions carry it, their type does not say so
    run.__annotations__ = {name: p.annotation for name, p in own.parameters.items()} | {"modules": option}
    return run


def import_named(module: str) -> None:
    """Import what the user has named; one that cannot be is said in a sentence."""
    try:
        import_module(module)
    except Exception as error:  # whatever a module raises, the user needs to know which one it was
        hint = "; install it, or name its folder in PYTHONPATH" if isinstance(error, ModuleNotFoundError) else ""
        words = f"--import {module}: it cannot be imported ({type(error).__name__}: {error}){hint}"
        raise RegistryError(words) from None


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


_NO_ROOM = ("can't allocate memory", "not enough memory", "Unable to allocate")


def _words(error: Exception) -> str | None:
    """What to say of an error; ``None`` for a bug, which keeps its traceback.

    Errors the package raises on purpose are its own classes. What the machine refuses is nobody's bug.
    """
    if type(error).__module__.startswith("hgde."):
        return str(error)
    if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_ROOM):
        return "not enough memory; try a smaller width, a smaller graph, or another machine"
    if isinstance(error, OSError) and error.errno is not None:
        name = f"{str(error.filename)[:200]}: " if error.filename is not None else ""
        return f"{name}{error.strerror}"
    return None
