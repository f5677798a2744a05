"""Every command explains itself, and every setting has an option."""

import pytest
import typer
from hgde.settings import FIELDS
from typer.testing import CliRunner

from hgde.cli.main import app

COMMANDS = sorted(typer.main.get_command(app).commands)


def help_of(*command):
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "240", "TERMINAL_WIDTH": "240"})
    assert result.exit_code == 0, result.output
    return result.output


def test_the_first_page_names_every_command():
    told = help_of()
    for name in COMMANDS:
        assert name in told


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    assert len(help_of(name)) > 200


def test_training_has_an_option_for_every_setting():
    command = typer.main.get_command(app).commands["train"]
    options = {option for parameter in command.params for option in parameter.opts}
    for name in FIELDS:
        assert f"--{name.replace('_', '-')}" in options
