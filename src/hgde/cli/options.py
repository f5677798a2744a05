"""Command-line options made from the declarations of the settings, so that each is written once."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from hgde.cli.errors import import_named
from hgde.pipeline.settings import default_flat_settings, make_settings, owners_of, place_flat, read_settings
from hgde.sections import Leaf, nested, overlay, parse_assignment

SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", help="Settings file (TOML or JSON); options on the command line override it."),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Any setting by its path, such as --set model.solver.s_max=3."),
]
Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="Import this trusted module first, if a settings file or a run refers to it.",
    ),
]
_PANELS = {"data": "Data", "preprocessing": "Preprocessing", "task": "Task", "model": "Model", "training": "Training"}


def with_settings(
    command: Callable[..., None], sections: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> Callable[..., None]:
    """Give a command an option for every setting of the default model; it receives them, merged, as ``settings``.

    It also receives ``given``: the nested values that the user gave, in a file or as options. With ``sections``, there
    are options for the settings of these alone, and for none of those ``without`` names.
    """
    flat = {
        name: leaf
        for name, leaf in default_flat_settings().items()
        if (not sections or leaf.section in sections) and name not in without
    }
    own = inspect.signature(command, eval_str=True).parameters
    parameters = [p for name, p in own.items() if name not in ("settings", "given")]
    parameters += [_keyword("settings_file", SettingsFile), _keyword("assignments", Assignments)]
    parameters += [_keyword("modules", Modules)]
    parameters += [_keyword(name, _annotation(name, leaf)) for name, leaf in flat.items()]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        flags = {name: value for name in flat if (value := values.pop(name)) is not None}
        file, assignments = values.pop("settings_file"), values.pop("assignments") or []
        for module in values.pop("modules") or []:
            import_named(module)
        below = read_settings(file) if file is not None else {}
        by_path = dict(parse_assignment(text) for text in assignments)
        given = overlay(below, nested(place_flat(flags, overlay(below, nested(by_path)))))
        given = overlay(given, nested(by_path))
        command(settings=make_settings(given), given=given, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions carry it, their type does not say so
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _annotation(name: str, leaf: Leaf) -> Any:
    options = typing.get_args(leaf.kind) if isinstance(leaf.kind, types.UnionType) else (leaf.kind,)
    wanted = next(option for option in options if option is not type(None))
    wanted = str if typing.get_origin(wanted) is typing.Literal else wanted
    is_tuple = typing.get_origin(wanted) is tuple
    default = ",".join(f"{v:g}" if isinstance(v, float) else str(v) for v in leaf.default) if is_tuple else leaf.default
    flag = f"--{name.replace('_', '-')}"
    names = [f"{flag}/--no-{flag[2:]}"] if wanted is bool else [flag]
    metavar = "|".join(leaf.choices) if leaf.choices else ("A,B,..." if is_tuple else None)
    entries = owners_of(name)
    owner = f" [dim]({', '.join(entries[:3])}{', ...' if len(entries) > 3 else ''})[/dim]" if entries else ""
    shown = "" if default in (None, "") else f" [dim]Default: {default}[/dim]"
    option = typer.Option(
        *names,
        help=f"{leaf.help}{owner}{shown}",
        rich_help_panel=_PANELS.get(leaf.section, "Run"),
        show_default=False,
        metavar=metavar,
    )
    return Annotated[(str if is_tuple else wanted) | None, option]
