"""Parameters of the estimators, read off the declarations of the settings: names, defaults, documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from hgde.models.base import MODELS
from hgde.pipeline.settings import DEFAULT_MODEL, default_flat_settings, flat_settings
from hgde.sections import Leaf

C = TypeVar("C", bound=type)

OWN: dict[str, tuple[Any, str]] = {
    "validation_fraction": (0.2, "Share of the labels (or edges) held out for early stopping."),
    "random_state": (0, "Seed of initial weights, split and dropout; an int, a RandomState, or None for a random one."),
    "warm_start": (False, "Start from the weights of the last fit instead of new ones."),
    "verbose": (0, "1 shows a progress bar or, without a terminal, a line when a fit ends; 0 is quiet."),
    "options": (None, "Any other settings by path, such as {'model.solver.s_max': 3}."),
}
"""Parameters that only the estimators have."""

_LEFT_OUT = {"task", "seed", "seeds", "checkpoint_every"}
"""Settings that the estimator decides itself, or that are about run folders."""

_KEPT_OF_DATA = {"neighbours"}

DEFAULT = "default"
"""Stands for a parameter that nobody set: the preset's value, else the declared one. The declared value itself would
not do: asking for it must win over a preset, and an estimator cannot know who put a value there."""

_SET_BY_PRESETS = ("model", "training", "preprocessing")
"""Sections that presets set as they please; of a task they set a few things only."""


def is_given(leaf: Leaf, value: Any) -> bool:
    """Whether a parameter's value was asked for."""
    unset = _default(leaf)
    return not (isinstance(value, type(unset)) and value == unset)


def settings_of_task(task: str) -> dict[str, Leaf]:
    """The settings that an estimator for this task takes, by flat name."""
    taken = {}
    for name, leaf in default_flat_settings().items():
        own = (
            [leaf] if leaf.section != "task" else [one for one in flat_settings()[name] if ("task", task) in one.owners]
        )
        is_data = leaf.section == "data" and name not in _KEPT_OF_DATA
        if name not in _LEFT_OUT and own and not is_data:
            taken[name] = own[0]
    return taken


def with_parameters(task: str) -> Callable[[C], C]:
    """Give an estimator a constructor that only stores, with a parameter for every setting, and explain each."""

    def declare(cls: C) -> C:
        taken = settings_of_task(task)
        defaults = {name: _default(leaf) for name, leaf in taken.items()} | {k: v for k, (v, _) in OWN.items()}

        def __init__(self: Any, **given: Any) -> None:
            unknown = sorted(set(given) - set(defaults))
            if unknown:
                raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {unknown[0]!r}")
            for name, default in defaults.items():
                setattr(self, name, given.get(name, default))

        keyword = inspect.Parameter.KEYWORD_ONLY
        own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        own += [inspect.Parameter(name, keyword, default=value) for name, value in defaults.items()]
        __init__.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]  # functions may carry one
        cls.__init__ = __init__  # type: ignore[misc]  # the class is being made
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{_explained(taken)}"
        return cls

    return declare


def _default(leaf: Leaf) -> Any:
    return DEFAULT if _is_set_by_presets(leaf) else leaf.default


def _is_set_by_presets(leaf: Leaf) -> bool:
    return leaf.section in _SET_BY_PRESETS or leaf.path in _of_tasks()


@cache
def _of_tasks() -> frozenset[str]:
    presets = MODELS.get(DEFAULT_MODEL).presets.values()
    return frozenset(f"task.{name}" for preset in presets for name in preset.get("task", {}) if name != "name")


def _explained(taken: dict[str, Leaf]) -> str:
    lines = ["Parameters", "----------"]
    for name, leaf in taken.items():
        owner = next(
            (f" Of {entry} only." for path, entry in reversed(leaf.owners) if path not in ("model", "task")), ""
        )
        choices = f" One of {', '.join(leaf.choices)}." if leaf.choices else ""
        usual = f"{leaf.default!r} unless a preset says otherwise" if _is_set_by_presets(leaf) else repr(leaf.default)
        lines += [f"{name} : default {usual}", f"    {leaf.help}{choices}{owner}"]
    for name, (value, text) in OWN.items():
        lines += [f"{name} : default {value!r}", f"    {text}"]
    return "\n".join(lines)
