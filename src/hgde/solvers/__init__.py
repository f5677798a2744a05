"""Differential equations on a manifold, each method with the order it claims."""

from hgde.solvers.adams import Adams
from hgde.solvers.control import Controller
from hgde.solvers.dynamics import Flow
from hgde.solvers.method import Method, Step, Tolerances
from hgde.solvers.normal import RungeKutta
from hgde.solvers.odeint import odeint
from hgde.solvers.paper import HAM, HRK4, HEuler
from hgde.solvers.registry import METHODS
from hgde.solvers.solution import InputError, Solution, SolverError, Statistics, Status
from hgde.solvers.tableau import TABLEAUS, Tableau

__all__ = [
    "HAM",
    "HRK4",
    "METHODS",
    "TABLEAUS",
    "Adams",
    "Controller",
    "Flow",
    "HEuler",
    "InputError",
    "Method",
    "RungeKutta",
    "Solution",
    "SolverError",
    "Statistics",
    "Status",
    "Step",
    "Tableau",
    "Tolerances",
    "odeint",
]
