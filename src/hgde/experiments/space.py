"""What a search may change: one readable TOML file per family of models in ``spaces/``, or the user's own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hgde.models.base import MODELS
from hgde.pipeline.settings import Settings
from hgde.sections import Leaf, SettingsError, leaves

FOLDER = Path(__file__).with_name("spaces")


class SpaceError(ValueError):
    """A search space that cannot be used; the message says what is wrong with it."""


@dataclass(frozen=True)
class Dimension:
    """One setting and what is tried for it: ``values``, or real numbers from ``low`` to ``high``.

    ``when`` maps other settings to the values (one, or a list) they must have for this one to exist.
    """

    path: str
    values: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    when: Mapping[str, Any] = field(default_factory=dict)

    def exists_in(self, chosen: Mapping[str, Any]) -> bool:
        for path, wanted in self.when.items():
            value = lookup(chosen, path)
            if value not in (wanted if isinstance(wanted, list) else [wanted]):
                return False
        return True


def lookup(nested: Mapping[str, Any], path: str) -> Any:
    """The value at a path of nested settings; a choice given as plain text is its name."""
    inner: Any = nested
    for part in path.split("."):
        if isinstance(inner, str) and part == "name":
            return inner
        inner = inner.get(part) if isinstance(inner, Mapping) else None
    if isinstance(inner, Mapping):
        return inner.get("name")
    return inner


def exists(nested: Mapping[str, Any], path: str) -> bool:
    """Whether nested settings have something at a path; resolved ones do not have a setting that cannot act."""
    inner: Any = nested
    for part in path.split("."):
        if not isinstance(inner, Mapping) or part not in inner:
            return False
        inner = inner[part]
    return True


def read_space(path: Path | str) -> list[Dimension]:
    """The dimensions that a file declares."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpaceError(f"there is no search space {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpaceError(f"{path} cannot be read: {error}") from None
    return [_dimension(name, value, path) for name, value in content.items() if name != "models"]


def _dimension(name: str, value: Any, source: Path) -> Dimension:
    if not isinstance(value, dict):
        raise SpaceError(f'{source}: {name} must be a table such as ["{name}"] with values = [...] or low and high')
    unknown = set(value) - {"values", "low", "high", "log", "when"}
    if unknown:
        raise SpaceError(f"{source}: {name} has no {sorted(unknown)[0]!r}; there are values, low, high, log, when")
    if ("values" in value) == ("low" in value or "high" in value):
        raise SpaceError(f"{source}: {name} needs either values, or low and high")
    if "values" in value:
        if not value["values"]:
            raise SpaceError(f"{source}: {name} has no values")
        return Dimension(name, tuple(value["values"]), when=value.get("when", {}))
    low, high = value.get("low"), value.get("high")
    if low is None or high is None or not low < high or (value.get("log") and low <= 0):
        raise SpaceError(f"{source}: {name} needs low < high (both above 0 with log = true), got {low} and {high}")
    return Dimension(name, (), float(low), float(high), bool(value.get("log", False)), value.get("when", {}))


@cache
def space_for(model: str) -> tuple[Dimension, ...]:
    """The space of a model: the file of its name, one that lists it, or ``any.toml``; settings it lacks left out."""
    own = FOLDER / f"{model}.toml"
    if not own.exists():
        listed = [
            file
            for file in sorted(FOLDER.glob("*.toml"))
            if model in tomllib.loads(file.read_text(encoding="utf-8")).get("models", ())
        ]
        own = listed[0] if listed else FOLDER / "any.toml"
    return tuple(_that_exist(read_space(own), model))


def _that_exist(dimensions: list[Dimension], model: str) -> list[Dimension]:
    """Those whose setting the model has, without values that no entry answers to."""
    known = leaves_of(model)
    kept = []
    for dimension in dimensions:
        owned = known.get(dimension.path)
        if not owned:
            continue
        leaf = owned[0]
        values = dimension.values
        if leaf.registry is not None:
            values = tuple(value for value in values if value in leaf.registry)
        elif leaf.choices:
            values = tuple(value for value in values if value in leaf.choices)
        if values or dimension.low is not None:
            low, high = dimension.low, dimension.high
            kept.append(Dimension(dimension.path, values, low, high, dimension.log, dimension.when))
    return kept


def leaves_of(model: str) -> dict[str, list[Leaf]]:
    """Every setting that exists with a model, by path."""
    MODELS.get(model)
    found: dict[str, list[Leaf]] = {}
    for leaf in leaves(Settings, lambda path, registry: [model] if path == "model" else registry.names()):
        found.setdefault(leaf.path, []).append(leaf)
    return found


def check_space(dimensions: list[Dimension], model: str) -> None:
    """Refuse a user's space that names settings the model does not have."""
    known = leaves_of(model)
    for dimension in dimensions:
        if dimension.path not in known:
            raise SettingsError(f"the search space names {dimension.path}, which {model} does not have")
