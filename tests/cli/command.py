"""The command run inside the test's own process."""

import pandas as pd
from typer.testing import CliRunner

from hgde.cli.main import app

LEARN = ["--preset", "none", "--width", "8", "--time", "2", "--dropout", "0", "--lr", "0.05", "--epochs", "60"]
LEARN += ["--threads", "1", "--quiet"]


def hgde(*arguments, code=0):
    """What ``hgde ARGUMENTS`` prints, white space simplified; the exit code is checked, and that no traceback is shown."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    output = result.output + (result.stderr if result.stderr_bytes else "")
    unexpected = result.exception is not None and not isinstance(result.exception, SystemExit)
    assert result.exit_code == code and not unexpected, f"{output}\n{result.exception!r}"
    assert "Traceback" not in output
    return " ".join(output.split())


def predictions(run, out, *arguments):
    """The table that ``hgde predict`` writes."""
    hgde("predict", run, "--out", out, *arguments)
    return pd.read_csv(out)
