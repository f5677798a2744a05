"""Packed tables and archives."""

import gzip

import numpy as np
import pytest

from hgde.data import DataError
from hgde.data.io.npz import read_arrays
from hgde.data.io.tables import read_table


def test_what_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("hgde.data.errors.LARGEST_UNPACKED", 1000)
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(b"source,target\n" + b"1,2\n" * 100_000))
    with pytest.raises(DataError, match="unpacks to more than"):
        read_table(path)
    np.savez_compressed(tmp_path / "g.npz", x=np.zeros((1000, 100)))
    with pytest.raises(DataError, match="unpacks to more than"):
        read_arrays(tmp_path / "g.npz")
