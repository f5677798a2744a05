"""The command run inside the test's own process."""

import pandas as pd
from typer.testing import CliRunner

from hgde.cli.main import app

LEARN = ["--preset", "none", "--width", "8", "--time", "2", "--dropout", "0", "--lr", "0.05", "--epochs", "60"]
LEARN += ["--threads", "1", "--quiet"]


def hgde(*arguments, code=0):
    """What ``hgde ARGUMENTS`` prints, white space simplified. The exit code is checked; a traceback never comes."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    output = result.output + (result.stderr if result.stderr_bytes else "")
    assert result.exception is None or isinstance(result.exception, SystemExit), f"{output}\n{result.exception!r}"
    assert result.exit_code == code, output
    assert "Traceback" not in output
    return " ".join(output.split())


def predictions(run, out, *arguments):
    """The table that ``hgde predict`` writes."""
    hgde("predict", run, "--out", out, *arguments)
    return pd.read_csv(out)
