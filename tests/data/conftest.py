"""Tests of the data layer never see the user's own folder or cache."""

import pytest


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("HGDE_CACHE", str(folder))
    monkeypatch.delenv("HGDE_DATA", raising=False)
    return folder
