"""One mechanism for everything that has a name: models, diffusivities, solvers, tasks, metrics, data sets, steps.

A registry finds an entry in four ways: by its name; by the object itself; as ``"package.module:Name"``; and through
entry points, by which an installed package adds its own (group ``hgde.models``, ``hgde.metrics`` and so on). Built-in
entries live in one package each; its modules are imported at the first look, so that a new file there is all it takes.
Modules whose name starts with an underscore are helpers and hold no entries.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from threading import get_ident
from typing import Any, Generic, TypeVar

from hgde.spelling import closest

T = TypeVar("T")

_trusting: ContextVar[bool] = ContextVar("hgde_trusting", default=True)

REGISTRIES: dict[str, Registry[Any]] = {}
"""Every registry that has been made, by its plural."""


class RegistryError(ValueError):
    """A name that nothing answers to; the message names the nearest one."""


@contextmanager
def untrusted() -> Iterator[None]:
    """Inside, ``"package.module:Name"`` imports nothing: what a file from elsewhere names must be loaded already."""
    token = _trusting.set(False)
    try:
        yield
    finally:
        _trusting.reset(token)


def refuse_unloaded(name: str) -> None:
    """Raise for ``"package.module:Name"`` in an untrusted place whose module is not loaded; other names pass."""
    module, mark, _ = name.partition(":")
    if mark and not _trusting.get() and module not in sys.modules:
        raise RegistryError(
            f"{name[:120]!r} names code that is not loaded, and this file may not load it; if you trust it, import "
            f"{module[:120]} first (--import {module[:120]})"
        )


class Registry(Generic[T]):
    """Entries of one kind by name.

    Args:
        noun: what an entry is, for messages.
        plural: the registry's own name; entry points are looked up in the group ``hgde.<plural>``.
        home: packages and modules with the built-in entries; every public module of a package named here is imported.
        accepts: tells whether an object is an entry, so that objects work wherever names do.

    >>> from hgde import MODELS
    >>> "gcn" in MODELS.names(), MODELS.get("gcn").__name__
    (True, 'GCN')
    """

    def __init__(
        self, noun: str, plural: str, home: tuple[str, ...] = (), accepts: Callable[[Any], bool] | None = None
    ) -> None:
        self.noun, self.plural, self._home = noun, plural, home
        self._accepts = accepts or (lambda value: not isinstance(value, str))
        self._entries: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._plugins: dict[str, EntryPoint] = {}
        self._is_complete = False
        self._completing: set[int] = set()
        REGISTRIES[plural] = self

    def register(self, name: str, *aliases: str) -> Callable[[T], T]:
        """Decorator that adds a class or function under a name."""

        def add(entry: T) -> T:
            self.add(name, entry, *aliases)
            return entry

        return add

    def add(self, name: str, entry: T, *aliases: str) -> None:
        known = self._entries.get(name)
        if known is not None and _identity(known) != _identity(entry):
            raise RegistryError(f"two {self.plural} are called {name!r}: {_identity(known)} and {_identity(entry)}")
        self._entries[name] = entry
        for alias in aliases:
            self._aliases[alias] = name

    def get(self, key: str | T) -> T:
        """The entry a name, a ``"package.module:Name"`` or the entry itself stands for."""
        if not isinstance(key, str):
            if self._accepts(key):
                return key
            raise RegistryError(f"expected a {self.noun} or its name, got {type(key).__name__}")
        if ":" in key:
            return self._import(key)
        entry = self._entries.get(self._aliases.get(key, key))
        if entry is None:
            self._complete()
            entry = self._entries.get(self._aliases.get(key, key))
        if entry is None and key in self._plugins:
            entry = self._load(key)
        if entry is None:
            raise RegistryError(self._unknown(key))
        return entry

    def name_of(self, entry: T) -> str:
        """The name an entry goes by; for one that was never registered, ``"package.module:Name"``."""
        self._complete()
        for name, known in self._entries.items():
            if known is entry:
                return name
        return _identity(entry)

    def names(self) -> list[str]:
        """All names, plug-ins included, in alphabetical order."""
        self._complete()
        return sorted({*self._entries, *self._plugins})

    def items(self) -> Iterator[tuple[str, T]]:
        for name in self.names():
            yield name, self.get(name)

    def origin(self, name: str) -> str:
        """Who brought an entry: ``built in``, the plug-in's distribution, or the module that registered it."""
        self._complete()
        if name in self._plugins:
            distribution = self._plugins[name].dist
            return distribution.name if distribution is not None else self._plugins[name].value
        entry: Any = self.get(name)
        # An object made from a function, such as a metric, comes from where the function does.
        owner = getattr(entry, "function", entry)
        module = str(getattr(owner, "__module__", "") or type(owner).__module__)
        return "built in" if module.partition(".")[0] == "hgde" else module

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickled by name: there is one registry of a kind in a process."""
        return _find_registry, (self.plural, self._home)

    def __contains__(self, name: object) -> bool:
        self._complete()
        return name in self._entries or name in self._aliases or name in self._plugins

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def _complete(self) -> None:
        # A module of the home may look something up while it is imported. Another thread has to see all entries, and an
        # import that fails has to fail again at the next look, so completeness is claimed only at the end.
        thread = get_ident()
        if self._is_complete or thread in self._completing:
            return
        self._completing.add(thread)
        try:
            for name in self._home:
                package = import_module(name)
                for module in iter_modules(getattr(package, "__path__", [])):
                    if not module.name.startswith("_"):
                        import_module(f"{name}.{module.name}")
            for plugin in entry_points(group=f"hgde.{self.plural}"):
                if plugin.name not in self._entries:  # a plug-in adds; it does not replace what is built in
                    self._plugins[plugin.name] = plugin
            self._is_complete = True
        finally:
            self._completing.discard(thread)

    def _load(self, name: str) -> T:
        plugin = self._plugins[name]
        try:
            entry: T = plugin.load()
        except Exception as error:  # whatever a plug-in's import raises, the user needs to know which plug-in it was
            raise RegistryError(
                f"the {self.noun} {name!r} of the plug-in {plugin.value} cannot be loaded: {error}"
            ) from error
        self._entries[name] = entry
        return entry

    def _import(self, key: str) -> T:
        module, _, attribute = key.partition(":")
        refuse_unloaded(key)
        try:
            entry: Any = import_module(module)
            for part in attribute.split("."):
                entry = getattr(entry, part)
        except (ImportError, AttributeError, ValueError) as error:
            raise RegistryError(f"there is no {self.noun} at {key[:120]!r} ({error})") from None
        if not self._accepts(entry):
            raise RegistryError(f"{key!r} is not a {self.noun}")
        return entry

    def _unknown(self, key: str) -> str:
        names = self.names()
        near = closest(key, names)
        hint = f"did you mean {near!r}? There are" if near else "there are"
        return (
            f"unknown {self.noun} {key[:60]!r}; {hint} {', '.join(names)} (`hgde list {self.plural}`), or name "
            'your own as "package.module:Name"'
        )


def _find_registry(plural: str, home: tuple[str, ...]) -> Registry[Any]:
    for name in home:
        import_module(name)
    return REGISTRIES[plural]


def _identity(entry: Any) -> str:
    owner = entry if hasattr(entry, "__qualname__") else type(entry)
    return f"{owner.__module__}:{owner.__qualname__}"
