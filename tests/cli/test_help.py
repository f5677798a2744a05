"""Every command explains itself, every setting has an option, and what there is by name is listed."""

import pytest
import typer
from command import hgde
from typer.testing import CliRunner

from hgde import __version__
from hgde.cli.listing import KINDS
from hgde.cli.main import app
from hgde.data.spec import DATASETS
from hgde.models.base import MODELS
from hgde.pipeline.settings import default_flat_settings

COMMANDS = sorted(typer.main.get_command(app).list_commands(None))


def help_of(*command):
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "240", "TERMINAL_WIDTH": "240"})
    assert result.exit_code == 0, result.output
    return result.output


def test_the_first_page_names_every_command():
    output = help_of()
    for name in COMMANDS:
        assert name in output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    assert len(help_of(name)) > 200


def test_training_has_an_option_for_every_setting_and_explains_it():
    output = " ".join(help_of("train").replace("│", " ").split())
    for name, leaf in default_flat_settings().items():
        assert f"--{name.replace('_', '-')}" in output
        assert leaf.help.split("`")[0].split("(")[0].strip()[:25] in output, name


def test_version():
    assert hgde("--version") == f"hgde {__version__}"


@pytest.mark.parametrize("kind", KINDS)
def test_lists(kind):
    assert "built in" in hgde("list", kind)


def test_a_list_with_settings_names_them():
    output = hgde("list", "models", "--settings")
    assert "width" in output
    for name in MODELS.names():
        assert name in output


def test_lists_fit_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = hgde("data", "list")
    for name in DATASETS:
        assert name in shown
    assert "[features W, positions" in hgde("list", "models"), "brackets are text, not markup"
    assert "hgde default" in hgde("list", "presets").replace("│ ", "")
