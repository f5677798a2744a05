"""Fit, load, predict, evaluate: what the command line, the estimators and the experiments all call."""

from hgde.pipeline.fit import Reporter, Result, Summary, fit, resume
from hgde.pipeline.fitted import Fitted, load
from hgde.pipeline.folder import RunError, RunFolder
from hgde.pipeline.prepare import Prepared, prepare, versions
from hgde.pipeline.settings import RunSettings, Settings, make_settings, read_settings
from hgde.pipeline.tables import write_table

__all__ = [
    "Fitted",
    "Prepared",
    "Reporter",
    "Result",
    "RunError",
    "RunFolder",
    "RunSettings",
    "Settings",
    "Summary",
    "fit",
    "load",
    "make_settings",
    "prepare",
    "read_settings",
    "resume",
    "versions",
    "write_table",
]
