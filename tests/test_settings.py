"""Settings: one typed place, file under command line, mistakes named."""

import json

import pytest

from hgde.diffusion import DIFFUSIVITIES
from hgde.kernels import ACTIVATIONS
from hgde.settings import FIELDS, Settings, SettingsError, from_dict, read_settings
from hgde.solvers import SOLVERS


@pytest.mark.parametrize(
    ("name", "known"), [("method", SOLVERS), ("diffusivity", DIFFUSIVITIES), ("activation", ACTIVATIONS)]
)
def test_choices_are_those_of_the_registry(name, known):
    choices = FIELDS[name].metadata["choices"]
    assert set(choices) <= set(known)
    if name != "activation":
        assert set(choices) == set(known)


def test_every_setting_says_what_it_is():
    for name, spec in FIELDS.items():
        assert spec.metadata["help"].endswith("."), name
        assert spec.metadata["group"] in ("Data", "Model", "Training", "Run")


def test_json_round_trip():
    settings = Settings(width=3, eta=(1, 0, 0.5), device="cpu")
    assert from_dict(json.loads(settings.to_json())) == settings


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"widht": 3}, "unknown setting 'widht'; did you mean 'width'"),
        ({"method": "hrk5"}, r"method must be one of .*did you mean 'hrk4'"),
        ({"width": "wide"}, "width must be int, got 'wide'"),
        ({"width": True}, "width must be int"),
        ({"width": 2.5}, "width must be int"),
        ({"residual": 1}, "residual must be bool"),
        ({"eta": (1, 2)}, "eta must be three numbers"),
        ({"eta": "1,a,2"}, "eta must be three numbers"),
        ({"lr": 0}, "lr must be greater than 0"),
        ({"lr": float("nan")}, "lr must be greater than 0"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\)"),
        ({"beta": 1.5}, "beta must be between 0 and 1"),
        ({"weight_decay": -1}, "weight_decay must not be negative"),
        ({"nodes": "a.csv"}, "nodes was given without edges"),
    ],
)
def test_mistakes_are_named(values, words):
    with pytest.raises(SettingsError, match=words):
        from_dict(values)


def test_numbers_of_numpy_are_numbers():
    import numpy as np

    settings = Settings(width=np.int64(4), lr=np.float32(0.5), time=3)
    assert (settings.width, settings.lr, settings.time) == (4, 0.5, 3.0)
    assert type(settings.width) is int
    assert type(settings.time) is float


@pytest.mark.parametrize(
    ("name", "text"), [("a.toml", 'width = 8\nmethod = "rk4"'), ("a.json", '{"width": 8, "method": "rk4"}')]
)
def test_files(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    assert read_settings(tmp_path / name) == {"width": 8, "method": "rk4"}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "widht = 8", "widht.*did you mean 'width'"),
        ("a.toml", "width = ", "cannot be read"),
        ("a.json", "[1, 2]", "names and values"),
        ("a.toml", "width = -1", "a.toml: width must be greater"),
    ],
)
def test_files_with_mistakes(name, text, words, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(SettingsError, match=words):
        read_settings(tmp_path / name)


def test_missing_file(tmp_path):
    with pytest.raises(SettingsError, match="does not exist"):
        read_settings(tmp_path / "none.toml")
