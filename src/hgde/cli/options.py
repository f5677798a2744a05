"""Command-line options made from the settings, so that each is declared once."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from hgde.settings import FIELDS, Settings, from_dict, read_settings

_TYPES = typing.get_type_hints(Settings)

SettingsFile = Annotated[
    Path | None, typer.Option("--settings", help="File of settings (TOML or JSON); options given here win over it.")
]


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for every setting; it receives them, merged, as ``settings``."""
    own = inspect.signature(command, eval_str=True).parameters
    parameters = [p for name, p in own.items() if name != "settings"]
    parameters.append(_keyword("settings_file", SettingsFile))
    parameters += [_keyword(name, _annotation(name)) for name in FIELDS]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        given = {name: values.pop(name) for name in FIELDS}
        file = values.pop("settings_file")
        merged = read_settings(file) if file is not None else {}
        merged |= {name: value for name, value in given.items() if value is not None}
        command(settings=from_dict(merged), **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions carry it, their type does not say so
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _annotation(name: str) -> Any:
    spec, kind = FIELDS[name], _TYPES[name]
    options = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    wanted = next(option for option in options if option is not type(None))
    wanted = str if typing.get_origin(wanted) is typing.Literal else wanted
    is_tuple = typing.get_origin(wanted) is tuple
    value: Any = spec.default
    default = ",".join(f"{v:g}" for v in value) if is_tuple else value
    flag = f"--{name.replace('_', '-')}"
    names = [f"{flag}/--no-{flag[2:]}"] if wanted is bool else [flag]
    choices = spec.metadata["choices"]
    metavar = "|".join(choices) if choices else ("A,B,C" if is_tuple else None)
    option = typer.Option(
        *names,
        help=spec.metadata["help"]
        if default in (None, "")
        else f"{spec.metadata['help']} [dim]Default: {default}[/dim]",
        rich_help_panel=spec.metadata["group"],
        show_default=False,
        metavar=metavar,
    )
    return Annotated[(str if is_tuple else wanted) | None, option]
