"""Specifications of data sets, changed for one test."""


def with_spec(monkeypatch, spec):
    """Put another specification in the place of a registered one, for one test."""
    from hgde.data import DATASETS

    DATASETS.names()  # everything registered is there before something is replaced
    monkeypatch.setitem(DATASETS._entries, spec.name, spec)
