"""Every setting of a run: the sections that the parts declare, put together.

A value comes from its declaration's default, then from a settings file (TOML or JSON, with sections), then from the
command line or an estimator's parameters; the last one given wins.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hgde.data.preprocessing import PreprocessingSettings
from hgde.data.settings import DataSettings
from hgde.files import read_problem
from hgde.models.base import MODELS
from hgde.registry import Registry, RegistryError, refuse_unloaded, untrusted
from hgde.sections import (
    Chosen,
    Leaf,
    Section,
    SettingsError,
    build,
    choice,
    from_dict,
    leaves,
    nested,
    overlay,
    section,
    setting,
)
from hgde.tasks import TASKS
from hgde.training.settings import TrainingSettings

DEFAULT_MODEL = "hgde"
_LARGEST_FILE = 16 << 20


@dataclass(frozen=True)
class RunSettings(Section):
    """Seeds, number type, device and threads of a run, and how often it is kept.

    >>> RunSettings(seeds=5, dtype="float64").seeds
    5
    """

    seed: int = setting(0, "Seed of the first run.", at_least=0, below=2**63)
    seeds: int = setting(1, "Number of seeds to run, one after the other.", above=0)
    dtype: str = setting("float32", "Floating-point type.", choices=("float32", "float64"))
    device: str = setting("auto", "Device: auto, cpu, cuda, cuda:1, ...")
    threads: int | None = setting(None, "CPU threads (default: torch's).", above=0)
    checkpoint_every: int = setting(50, "Epochs between checkpoints (at least one every 30 s).", above=0)

    def check(self) -> None:
        if self.seed + self.seeds > 2**63:
            raise SettingsError(
                f"seed must be less than 2^63 for each of the {self.seeds} seeds; start with a smaller one"
            )


@dataclass(frozen=True)
class Settings(Section):
    """What a run depends on. Two runs with equal settings, data and versions give the same bits.

    >>> from hgde import make_settings
    >>> settings = make_settings({"model": {"width": 8}})
    >>> settings.model.options.width, settings.replace({"run.seeds": 3}).run.seeds
    (8, 3)
    """

    preset: str = setting(
        "auto",
        "Preset of the model to start from; your own settings override it. auto: chosen on the validation part by "
        "successive halving; none: the declared defaults (`hgde list presets`).",
    )
    data: DataSettings = section(DataSettings)
    preprocessing: PreprocessingSettings = section(PreprocessingSettings)
    task: Chosen = choice(TASKS, "nodes", "What to learn (`hgde list tasks`).")
    model: Chosen = choice(MODELS, DEFAULT_MODEL, "Which model (`hgde list models`).")
    training: TrainingSettings = section(TrainingSettings)
    run: RunSettings = section(RunSettings)

    @property
    def given(self) -> dict[str, Any]:
        """The nested values that someone gave, which win over a preset."""
        return getattr(self, "_given", {})

    def replace(self, changes: Mapping[str, Any] | None = None, **more: Any) -> Settings:
        wanted = nested({**(changes or {}), **more})
        made = super().replace(changes, **more)
        object.__setattr__(made, "_given", overlay(self.given, wanted))
        return made


def make_settings(given: Mapping[str, Any] | None = None, *, lenient: bool = False) -> Settings:
    """Settings from nested plain values; what is not given has its default.

    ``lenient`` lets settings be that cannot act, as those of a preset under what a user gave.

    >>> make_settings({"model": {"name": "gcn"}, "training": {"lr": 0.05}}).training.lr
    0.05
    """
    values = dict(given or {})
    made = build(Settings, values) if lenient else from_dict(Settings, values)
    object.__setattr__(made, "_given", values)
    return made


def restore_settings(stored: Mapping[str, Any], given: Mapping[str, Any]) -> Settings:
    """Settings as they were stored, with what was given for them."""
    made = make_settings(stored, lenient=True)
    object.__setattr__(made, "_given", dict(given))
    return made


def refuse_code(settings: Settings) -> None:
    """Refuse names that are looked up only when they are used, if they stand for code that a file may not load."""
    options = settings.task.options
    names = [settings.data.name, settings.preprocessing.normalise, *settings.preprocessing.steps]
    names += [str(getattr(options, name)) for name in ("metric", "decoder") if getattr(options, name, None)]
    try:
        for name in names:
            refuse_unloaded(name)
    except RegistryError as error:
        raise SettingsError(str(error)) from None


def read_settings(path: str | Path) -> dict[str, Any]:
    """The nested values that a TOML or JSON file gives, checked, to be laid under others.

    A file may come from elsewhere: what it names as ``"package.module:Name"`` must be imported already.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.toml"
    ...     _ = path.write_text("model.width = 8")
    ...     read_settings(path)
    {'model': {'width': 8}}
    """
    path = Path(path)
    try:
        problem = read_problem(path, most=_LARGEST_FILE)
        if problem is not None:
            raise SettingsError(f"settings file {path} cannot be read: {problem}")
        text = path.read_text(encoding="utf-8-sig")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError:
        raise SettingsError(f"settings file {path} does not exist") from None
    except OSError as error:
        raise SettingsError(f"settings file {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not TOML, not JSON, not UTF-8, or nested without end
        raise SettingsError(f"settings file {path} cannot be read: {str(error)[:200]}") from None
    if not isinstance(values, dict):
        raise SettingsError(f"settings file {path} must hold sections of names and values")
    try:
        with untrusted():
            refuse_code(make_settings(values))
    except SettingsError as error:
        raise SettingsError(f"settings file {path}: {error}") from None
    return values


@cache
def flat_settings() -> dict[str, list[Leaf]]:
    """Every setting by the flat name it has as a flag or an estimator's parameter.

    A name may stand for settings of several entries (every model has its own ``width``): what is chosen decides.
    """
    flat: dict[str, list[Leaf]] = {}
    for leaf in leaves(Settings):
        flat.setdefault(leaf.flag, []).append(leaf)
    return flat


def default_flat_settings() -> dict[str, Leaf]:
    """The flat names that the default model has, each with what it stands for there."""
    flat = {}
    for name, owned in flat_settings().items():
        fitting = [leaf for leaf in owned if ("model", DEFAULT_MODEL) in leaf.owners or not _in_model(leaf)]
        if fitting:
            flat[name] = min(fitting, key=lambda leaf: _missing_owner(leaf, {}, {}) is not None)
    return flat


def owners_of(name: str) -> list[str]:
    """The entries that have a setting of this flat name, other than models; empty if it hangs on none."""
    owned = [leaf.owners[-1] for leaf in flat_settings()[name] if leaf.owners and leaf.owners[-1][0] != "model"]
    return list(dict.fromkeys(entry for _, entry in owned))


def _in_model(leaf: Leaf) -> bool:
    return any(path == "model" for path, _ in leaf.owners)


def place_flat(given: Mapping[str, Any], below: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Flat names as paths. Where a name belongs to several entries, the one that is chosen decides.

    ``below`` are nested values from a file, which may choose entries too.
    """
    flat = flat_settings()
    chosen = {leaf.path: str(value) for key, value in given.items() for leaf in flat[key] if leaf.registry is not None}
    for key, value in given.items():
        for leaf in flat[key]:
            if leaf.registry is not None:
                _check_entry(leaf.registry, key, value)
    paths: dict[str, Any] = {}
    for key, value in given.items():
        fitting = [leaf for leaf in flat[key] if _missing_owner(leaf, chosen, below or {}) is None]
        if not fitting:
            raise SettingsError(_without_owner(key, flat[key], chosen, below or {}))
        paths[fitting[0].path] = value
    return paths


def _check_entry(registry: Registry[Any], name: str, value: Any) -> None:
    """A name that nothing answers to is said first: what else was given may hang on it."""
    try:
        registry.get(value)
    except RegistryError as error:
        raise SettingsError(f"{name}: {error}") from None


def _missing_owner(leaf: Leaf, chosen: Mapping[str, str], below: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first choice that would have to be another for the setting to exist."""
    return next((owner for owner in leaf.owners if _chosen_name(owner[0], chosen, below) != owner[1]), None)


def _chosen_name(place: str, chosen: Mapping[str, str], below: Mapping[str, Any]) -> str:
    """The entry chosen at a path: by a flag, by the file, or by default."""
    if f"{place}.name" in chosen:
        return chosen[f"{place}.name"]
    inner: Any = below
    for part in place.split("."):
        inner = inner.get(part) if isinstance(inner, Mapping) else None
    if isinstance(inner, str):
        return inner
    if isinstance(inner, Mapping) and "name" in inner:
        return str(inner["name"])
    default = next(leaf for owned in flat_settings().values() for leaf in owned if leaf.path == f"{place}.name")
    return str(default.default)


def _without_owner(key: str, owned: list[Leaf], chosen: Mapping[str, str], below: Mapping[str, Any]) -> str:
    # The nearest of the settings of that name: the one with most of its choices made.
    nearest = max(owned, key=lambda leaf: leaf.owners.index(_missing_owner(leaf, chosen, below) or leaf.owners[0]))
    missing = [owner for leaf in owned if (owner := _missing_owner(leaf, chosen, below)) is not None]
    place = (_missing_owner(nearest, chosen, below) or missing[0])[0]
    entries = ", ".join(dict.fromkeys(entry for path, entry in missing if path == place))
    return f"{key} has no effect: {place} is {_chosen_name(place, chosen, below)}, and this is a setting of {entries}"
