"""Every method by name. Strings are a convenience resolved here, and objects work wherever a name does."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

from hgde.solvers.adams import Adams
from hgde.solvers.method import Method
from hgde.solvers.normal import RungeKutta
from hgde.solvers.paper import HAM, HRK4, HEuler
from hgde.solvers.solution import InputError
from hgde.solvers.tableau import BOSH3, DOPRI5, EULER, HEUN, MIDPOINT, RK4

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        HEuler(),
        HRK4(),
        HAM(),
        RungeKutta(EULER),
        RungeKutta(MIDPOINT),
        RungeKutta(HEUN),
        RungeKutta(RK4),
        RungeKutta(BOSH3),
        RungeKutta(DOPRI5),
        Adams(implicit_formula=False),
        Adams(implicit_formula=True),
    )
}


def resolve(method: str | Method, options: dict[str, Any]) -> Method:
    """The method itself, with its options replaced by those given."""
    if isinstance(method, str):
        found = METHODS.get(method)
        if found is None:
            near = difflib.get_close_matches(method, METHODS, n=1, cutoff=0.0)
            raise InputError(f"unknown method {method!r}; did you mean {near[0]!r}? Known: {', '.join(METHODS)}")
        method = found
    if not isinstance(method, Method):
        raise InputError(f"expected a method or its name, got {type(method).__name__}")
    if not options:
        return method
    fields = dataclasses.fields(method)  # type: ignore[arg-type]  # every method is a dataclass
    known = [f.name for f in fields if f.name not in ("implicit_formula", "tableau")]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(
            f"{method.name} has no option {unknown[0]!r}; it takes {', '.join(known) if known else 'no options'}"
        )
    return dataclasses.replace(method, **options)  # type: ignore[type-var]  # as above
