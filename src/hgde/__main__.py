"""``python -m hgde`` is the command line."""

from hgde.cli.main import run

run()
