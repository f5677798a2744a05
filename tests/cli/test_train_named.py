"""``hgde train`` on the registered data sets, by the words a user would type."""

import pytest
from typer.testing import CliRunner

from hgde.cli.main import app


@pytest.mark.parametrize(
    "words",
    ["--data cora", "--data airport", "--data texas --split 3", "--data pubmed --task links"],
)
def test_train_runs_on_a_named_data_set(words, data_folder, tmp_path):
    out = tmp_path / "run"
    command = ["train", *words.split(), "--data-root", str(data_folder), "--epochs", "2", "--out", str(out), "--quiet"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert (out / "seed-0" / "model.safetensors").exists()
    assert (out / "summary.json").exists()
