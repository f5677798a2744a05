"""Settings in sections: typed, checked, each declared once beside what it sets.

A section is a frozen dataclass whose fields are made with :func:`setting`; nested sections and :func:`choice` (one of
the entries of a registry, with that entry's own settings) make a tree. Everything else is read off the declarations:
settings files, ``--set a.b=c``, flags of the command line, parameters of the estimators and their documentation.

A setting that cannot act, given the others, is refused when someone gives it, and left out when settings are stored.
"""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from hgde.registry import Registry, RegistryError
from hgde.spelling import closest

S = TypeVar("S", bound="Section")
NAME = "name"


class SettingsError(ValueError):
    """A setting that cannot be used; the message names it and what would be right, and never shows a whole file."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= 1000 else f"{message[:800]}... ({len(message):,} characters)")


@dataclass(frozen=True)
class Declaration:
    """What is known of a setting besides its type and default.

    ``inert`` is given the section and says why the setting cannot act, or ``None`` when it can. ``flag`` is the name on
    the command line and in estimators, where the field's own would not be clear outside its section.
    """

    help: str
    choices: tuple[str, ...] = ()
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    flag: str | None = None
    inert: Callable[[Any], str | None] | None = None
    registry: Registry[Any] | None = None
    entry: str = ""


def setting(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    flag: str | None = None,
    inert: Callable[[Any], str | None] | None = None,
) -> Any:
    """A field of a section: its default, what it does, and the values it may have.

    >>> from dataclasses import dataclass
    >>> from hgde.sections import Section
    >>> @dataclass(frozen=True)
    ... class Oven(Section):
    ...     degrees: int = setting(180, "How hot.", at_least=50, at_most=250)
    >>> Oven(degrees=1000)
    Traceback (most recent call last):
    hgde.sections.SettingsError: ...
    """
    declaration = Declaration(help, choices, above, at_least, below, at_most, flag, inert)
    return field(default=default, metadata={"declaration": declaration})


def choice(registry: Registry[Any], default: str, help: str, *, flag: str | None = None) -> Any:
    """A field that picks one entry of a registry, together with that entry's own settings (its class ``Settings``)."""
    declaration = Declaration(help, flag=flag, registry=registry, entry=default)
    return field(default_factory=lambda: choose(registry, default), metadata={"declaration": declaration})


def section(kind: type[S]) -> Any:
    """A field that holds a section of its own."""
    return field(default_factory=kind)


@dataclass(frozen=True)
class Section:
    """Base of all sections. Types and ranges are checked when one is made.

    >>> from dataclasses import dataclass
    >>> from hgde.sections import setting
    >>> @dataclass(frozen=True)
    ... class Oven(Section):
    ...     degrees: int = setting(180, "How hot.", at_least=50, at_most=250)
    >>> Oven(degrees=200).to_dict(), Oven().replace({"degrees": 90}).degrees
    ({'degrees': 200}, 90)
    """

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            if _declared(spec) is not None:
                object.__setattr__(self, spec.name, _checked(type(self), spec, getattr(self, spec.name)))
        self.check()

    def check(self) -> None:
        """Refuse settings that contradict each other; for sections that have such."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, settings that cannot act left out."""
        stored: dict[str, Any] = {}
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if isinstance(value, Section | Chosen):
                stored[spec.name] = value.to_dict()
            elif inert_reason(self, spec.name) is None:
                stored[spec.name] = list(value) if isinstance(value, tuple) else value
        return stored

    def replace(self: S, changes: Mapping[str, Any] | None = None, **more: Any) -> S:
        """A copy with some settings changed, each by name or by path (``"solver.name"``)."""
        given = nested({**(changes or {}), **more})
        built = build(type(self), overlay(self.to_dict(), given))
        refuse_inert(built, given)
        return built


@dataclass(frozen=True)
class Chosen:
    """An entry of a registry by name, with its settings."""

    name: str
    options: Section
    registry: Registry[Any] = field(repr=False, compare=False)

    @property
    def entry(self) -> Any:
        return self.registry.get(self.name)

    def to_dict(self) -> dict[str, Any]:
        return {NAME: self.name, **self.options.to_dict()}


def settings_of(entry: Any) -> type[Section]:
    """The settings that an entry declares; an entry without any has an empty section."""
    declared = getattr(entry, "Settings", Section)
    return declared if isinstance(declared, type) and issubclass(declared, Section) else Section


def choose(registry: Registry[Any], name: str, options: Mapping[str, Any] | None = None, where: str = "") -> Chosen:
    """The entry of that name with its defaults, some of them overridden."""
    try:
        entry = registry.get(name)
    except RegistryError as error:
        raise SettingsError(f"{where}: {error}" if where else str(error)) from None
    owner = f"the {registry.noun} {name}"
    return Chosen(name, build(settings_of(entry), options or {}, where, owner), registry)


def from_dict(kind: type[S], values: Mapping[str, Any]) -> S:
    """A section from the values someone gave. Unknown keys name the nearest; settings that cannot act are refused."""
    built = build(kind, values)
    refuse_inert(built, values)
    return built


def build(kind: type[S], values: Mapping[str, Any], where: str = "", owner: str = "") -> S:
    """A section from plain values; settings among them that cannot act are kept."""
    specs = {spec.name: spec for spec in dataclasses.fields(kind)}
    hints = _hints(kind)
    made: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{where}.{key}" if where else key
        if key not in specs:
            raise SettingsError(_unknown_key(path, key, specs, owner))
        declaration = _declared(specs[key])
        if declaration is not None and declaration.registry is not None:
            made[key] = _choice_from(declaration, value, path)
        elif isinstance(hints[key], type) and issubclass(hints[key], Section):
            if not isinstance(value, Mapping):
                raise SettingsError(f"{path} is a section of settings, got {shown(value)}")
            made[key] = build(hints[key], value, path)
        else:
            made[key] = value
    try:
        return kind(**made)
    except SettingsError as error:
        raise SettingsError(f"{where}.{error}" if where else str(error)) from None


def refuse_inert(built: Section, given: Mapping[str, Any], where: str = "") -> None:
    """Raise for the first of the given settings that has no effect in this section or below it."""
    for key, value in given.items():
        if key == NAME and not hasattr(built, NAME):
            continue
        path = f"{where}.{key}" if where else key
        below = getattr(built, key)
        reason = inert_reason(built, key)
        if reason is not None:
            raise SettingsError(f"{path} has no effect: {reason}; leave it out")
        if isinstance(value, Mapping) and isinstance(below, Section | Chosen):
            refuse_inert(below.options if isinstance(below, Chosen) else below, value, path)


def inert_reason(built: Section, key: str) -> str | None:
    """Why a setting of this section cannot act, ``None`` if it can."""
    declaration = _declared(next(spec for spec in dataclasses.fields(built) if spec.name == key))
    return declaration.inert(built) if declaration is not None and declaration.inert is not None else None


@dataclass(frozen=True)
class Leaf:
    """One setting of a tree: where it is, what it is called when flat, and which choices it hangs on.

    ``owners`` holds ``(path of the choice, name of the entry)`` for every entry that must be chosen for it to exist.
    """

    path: str
    flag: str
    help: str
    kind: Any
    default: Any
    choices: tuple[str, ...]
    owners: tuple[tuple[str, str], ...] = ()
    registry: Registry[Any] | None = None

    @property
    def section(self) -> str:
        return self.path.partition(".")[0]


def leaves(
    kind: type[Section], entries: Callable[[str, Registry[Any]], list[str]] | None = None, path: str = ""
) -> Iterator[Leaf]:
    """Every setting of a tree. ``entries(path, registry)`` says which entries of a choice to open; default: all."""
    yield from _leaves(kind, entries or (lambda _, registry: registry.names()), path, ())


def _leaves(
    kind: type[Section],
    entries: Callable[[str, Registry[Any]], list[str]],
    path: str,
    owners: tuple[tuple[str, str], ...],
) -> Iterator[Leaf]:
    hints = _hints(kind)
    for spec in dataclasses.fields(kind):
        where = f"{path}.{spec.name}" if path else spec.name
        declaration = _declared(spec)
        if declaration is None:
            yield from _leaves(hints[spec.name], entries, where, owners)
        elif declaration.registry is not None:
            registry = declaration.registry
            flag = declaration.flag or spec.name
            yield Leaf(f"{where}.{NAME}", flag, declaration.help, str, declaration.entry, (), owners, registry)
            for name in entries(where, registry):
                yield from _leaves(settings_of(registry.get(name)), entries, where, (*owners, (where, name)))
        else:
            yield Leaf(
                where, declaration.flag or spec.name, declaration.help, hints[spec.name], spec.default,
                declaration.choices, owners,
            )  # fmt: skip


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """``{"a.b": 1}`` as ``{"a": {"b": 1}}``."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        place = tree
        *parents, last = path.split(".")
        for parent in parents:
            inner = place.setdefault(parent, {})
            if not isinstance(inner, dict):
                inner = place[parent] = {NAME: inner}
            place = inner
        known = place.get(last)
        if isinstance(known, dict) and isinstance(value, str):
            known[NAME] = value
        elif isinstance(known, dict) and isinstance(value, Mapping):
            place[last] = overlay(known, value)
        else:
            place[last] = dict(value) if isinstance(value, Mapping) else value
    return tree


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings laid over others. Where another entry is chosen, the settings of the one below are dropped."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(under, Mapping) and isinstance(value, str):
            value = {NAME: value}
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            changes_entry = NAME in value and NAME in under and value[NAME] != under[NAME]
            merged[key] = dict(value) if changes_entry else overlay(under, value)
        else:
            merged[key] = dict(value) if isinstance(value, Mapping) else value
    return merged


def parse_assignment(text: str) -> tuple[str, Any]:
    """``a.b=c`` of ``--set``: the value is read as JSON where it is JSON, else as text."""
    path, mark, value = text.partition("=")
    if not mark or not path.strip():
        raise SettingsError(f"expected PATH=VALUE such as model.width=32, got {shown(text)}")
    try:
        return path.strip(), json.loads(value)
    except json.JSONDecodeError:
        return path.strip(), value


def shown(value: Any) -> str:
    """A value as a message shows it: someone may have given a whole file."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a number of more than 40 digits"
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text):,} characters)"


def _choice_from(declaration: Declaration, value: Any, path: str) -> Chosen:
    registry = declaration.registry
    assert registry is not None
    if isinstance(value, Chosen):
        if value.registry is not registry:
            raise SettingsError(f"{path} must be a choice of a {registry.noun}, got one of a {value.registry.noun}")
        return value
    if isinstance(value, str):
        return choose(registry, value, where=path)
    if isinstance(value, Mapping):
        options = dict(value)
        name = options.pop(NAME, declaration.entry)
        if not isinstance(name, str):
            raise SettingsError(f"{path}.{NAME} must be the name of a {registry.noun}, got {shown(name)}")
        return choose(registry, name, options, path)
    raise SettingsError(f"{path} must name a {registry.noun}, got {shown(value)}")


def _declared(spec: dataclasses.Field[Any]) -> Declaration | None:
    declaration: Declaration | None = spec.metadata.get("declaration")
    return declaration


def _unknown_key(path: str, key: str, known: Mapping[str, Any], owner: str) -> str:
    near = closest(key, known)
    whose = f"{owner} has no such setting" if owner else "there is no such setting"
    hint = f"did you mean {near!r}? " if near else ""
    takes = f"it takes {', '.join(known)}" if owner else f"there are {', '.join(known)}"
    return f"unknown setting {shown(path)}: {whose}; {hint}{takes if known else 'it takes none'}"


_HINTS: dict[type[Section], dict[str, Any]] = {}


def _hints(kind: type[Section]) -> dict[str, Any]:
    """The types of a section's fields, read once: Python compiles every annotation anew each time it is asked."""
    if kind not in _HINTS:
        _HINTS[kind] = typing.get_type_hints(kind)
    return _HINTS[kind]


def _checked(kind: type[Section], spec: dataclasses.Field[Any], value: Any) -> Any:
    declaration = _declared(spec)
    assert declaration is not None
    if declaration.registry is not None:
        return _choice_from(declaration, value, spec.name)
    hint = _hints(kind)[spec.name]
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and type(None) in options:
        return None
    wanted = [option for option in options if option is not type(None)]
    converted = next((made for option in wanted if (made := _convert(option, value)) is not None), None)
    if converted is None:
        raise SettingsError(f"{spec.name} must be {' or '.join(_described(o) for o in wanted)}, got {shown(value)}")
    _check_choices(spec.name, declaration, converted)
    for number in converted if isinstance(converted, tuple) else (converted,):
        if isinstance(number, float | int) and not isinstance(number, bool):
            _check_range(spec.name, declaration, number)
    return converted


def _check_choices(name: str, declaration: Declaration, value: Any) -> None:
    if declaration.choices and value not in declaration.choices:
        near = closest(str(value), declaration.choices)
        hint = f" (did you mean {near!r}?)" if near else ""
        raise SettingsError(f"{name} must be one of {', '.join(declaration.choices)}, got {shown(value)}{hint}")


def _check_range(name: str, declaration: Declaration, number: float) -> None:
    if isinstance(number, float) and not math.isfinite(number):
        raise SettingsError(f"{name} must be a finite number, got {number}")
    if isinstance(number, int) and abs(number) >= 2**63:
        raise SettingsError(f"{name} must be less than 2^63, got {shown(number)}")
    bounds = (
        (declaration.above, operator.gt, "greater than"),
        (declaration.at_least, operator.ge, "at least"),
        (declaration.below, operator.lt, "less than"),
        (declaration.at_most, operator.le, "at most"),
    )
    for bound, holds, words in bounds:
        if bound is not None and not holds(number, bound):
            raise SettingsError(f"{name} must be {words} {bound:g}, got {shown(number)}")


def _described(wanted: Any) -> str:
    if typing.get_origin(wanted) is tuple:
        arguments = typing.get_args(wanted)
        return "a list" if Ellipsis in arguments else f"{len(arguments)} numbers"
    if typing.get_origin(wanted) is Literal:
        return "text"
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    return names.get(wanted, getattr(wanted, "__name__", str(wanted)))


def _convert(wanted: Any, value: Any) -> Any:
    """The value as the type asked for, ``None`` where it is not one."""
    if typing.get_origin(wanted) is Literal:
        return value if isinstance(value, str) else None
    if typing.get_origin(wanted) is tuple:
        return _convert_tuple(typing.get_args(wanted), value)
    if isinstance(value, bool) and wanted is not bool:
        return None
    if wanted is int and hasattr(value, "__index__"):
        return int(value)
    if wanted is float and hasattr(value, "__float__"):
        try:
            return float(value)
        except OverflowError:  # a whole number beyond all floats
            return math.inf
    return value if isinstance(value, wanted) else None


def _convert_tuple(arguments: tuple[Any, ...], value: Any) -> tuple[Any, ...] | None:
    if isinstance(value, str):
        # 1/0.6/0.1 is how papers write shares; a name may hold a slash of its own.
        listed = value.replace("/", ",") if arguments[0] is float else value
        value = [part.strip() for part in listed.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        return None
    kinds = [arguments[0]] * len(value) if Ellipsis in arguments else list(arguments)
    if len(kinds) != len(value):
        return None
    converted = []
    for kind, item in zip(kinds, value, strict=True):
        if kind is float and isinstance(item, str):
            try:
                item = float(item)
            except ValueError:
                return None
        made = _convert(kind, item)
        if made is None:
            return None
        converted.append(made)
    return tuple(converted)
