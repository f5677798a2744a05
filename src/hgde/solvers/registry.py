"""Every method by name. Strings are a convenience resolved here, and objects work wherever a name does."""

from __future__ import annotations

import dataclasses
from typing import Any

from hgde.registry import Registry, RegistryError
from hgde.sections import Chosen
from hgde.solvers.method import Method
from hgde.solvers.solution import InputError

SOLVERS: Registry[type[Method]] = Registry(
    "solver",
    "solvers",
    home=("hgde.solvers",),
    accepts=lambda value: isinstance(value, type) and issubclass(value, Method),
)
"""Subclasses of :class:`Method`, each to be made without arguments or with its own options."""

#: Settings of a method that are arguments of ``odeint`` rather than of the method itself.
CALL = ("step", "rtol", "atol")


def resolve(method: str | Method | type[Method], options: dict[str, Any] | None = None) -> Method:
    """The method itself, with its options replaced by those given.

    >>> resolve("explicit_adams", {"max_order": 4}).order
    3
    """
    if isinstance(method, Method):
        made = method
    else:
        try:
            made = SOLVERS.get(method)()
        except RegistryError as error:
            raise InputError(str(error)) from None
    if not options:
        return made
    known = [spec.name for spec in dataclasses.fields(made) if "declaration" in spec.metadata]  # type: ignore[arg-type]  # every method is a dataclass
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(
            f"{made.name} has no option {unknown[0]!r}; it takes {', '.join(known) if known else 'no options'}"
        )
    return dataclasses.replace(made, **options)  # type: ignore[type-var]  # every method is a dataclass


def configured(chosen: Chosen) -> tuple[Method, dict[str, Any]]:
    """A choice from :data:`SOLVERS` as a method and the arguments ``odeint`` is to be called with.

    ``method, call = configured(settings.solver); odeint(field, x0, t, manifold=manifold, method=method, **call)``

    >>> from hgde import SOLVERS
    >>> from hgde.sections import choose
    >>> method, call = configured(choose(SOLVERS, "dopri5", {"rtol": 1e-6}))
    >>> method.name, call
    ('dopri5', {'rtol': 1e-06, 'atol': 0.0001})
    """
    values = {spec.name: getattr(chosen.options, spec.name) for spec in dataclasses.fields(chosen.options)}
    call = {name: values.pop(name) for name in CALL if name in values}
    return resolve(chosen.entry, values), call
