"""All pairs, their linear-cost form and links are measured, each beside its bar."""

import pytest

from hgde.bench import pairs


@pytest.mark.slow
@pytest.mark.parametrize("name", pairs.MEASUREMENTS)
def test_a_quick_run_gives_every_row_a_bar(name, monkeypatch):
    monkeypatch.delenv("HGDE_DATA", raising=False)
    rows = list(pairs.MEASUREMENTS[name](True))
    assert rows
    assert all(row.bar is not None and row.sense in ("at least", "at most") for row in rows)
    assert all(row.value is None or row.value > 0 for row in rows)
