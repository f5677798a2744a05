"""Differential equations on a manifold, each method with the order it claims."""

from hgde.solvers.adams import ExplicitAdams, ImplicitAdams
from hgde.solvers.control import Controller
from hgde.solvers.dynamics import Flow
from hgde.solvers.method import AdaptiveStep, FixedStep, Method, Step, Tolerances
from hgde.solvers.odeint import odeint
from hgde.solvers.paper import HAM, HRK4, HEuler
from hgde.solvers.registry import SOLVERS, configured
from hgde.solvers.runge_kutta import RungeKutta
from hgde.solvers.solution import InputError, Solution, SolverError, Statistics, Status
from hgde.solvers.tableau import TABLEAUS, Tableau

__all__ = [
    "HAM",
    "HRK4",
    "SOLVERS",
    "TABLEAUS",
    "AdaptiveStep",
    "Controller",
    "ExplicitAdams",
    "FixedStep",
    "Flow",
    "HEuler",
    "ImplicitAdams",
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
    "configured",
    "odeint",
]
