"""The restricted unpickler reads what the old files hold and refuses, without running it, everything else."""

import io
import os
import pickle
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import random as random_sparse

from hgde.data.errors import DataError
from hgde.data.io.pickles import Record, csr_from, load_pickle


class Malicious:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", range(5))
def test_arrays_matrices_and_graphs_come_back(protocol, tmp_path):
    import networkx

    graph = networkx.Graph()
    graph.add_node("a", feat=np.arange(3.0))
    graph.add_node("b", feat=np.arange(3.0) + 1, size=np.float64(2.5))
    graph.add_edge("a", "b")
    matrix = random_sparse(5, 7, 0.4, format="csr", random_state=0)
    content = {
        "matrix": matrix,
        "fortran": np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
        "list": [1, "two", (3.0, None)],
        "graph": graph,
    }
    path = tmp_path / "file.p"
    path.write_bytes(pickle.dumps(content, protocol))
    loaded = load_pickle(path)
    np.testing.assert_array_equal(csr_from(loaded["matrix"], path).toarray(), matrix.toarray())
    np.testing.assert_array_equal(loaded["fortran"], content["fortran"])
    assert loaded["list"] == content["list"]
    assert isinstance(loaded["graph"], Record)
    np.testing.assert_array_equal(loaded["graph"].state["_node"]["b"]["feat"], [1, 2, 3])
    assert loaded["graph"].state["_node"]["b"]["size"] == 2.5


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize(
    "build",
    [
        lambda marker: Malicious(os.system, f"touch {marker}"),
        lambda marker: Malicious(eval, f"open({str(marker)!r}, 'w')"),
        lambda marker: Malicious(subprocess.check_call, ["touch", str(marker)]),
        lambda marker: Malicious(open, str(marker), "w"),
        lambda marker: Malicious(Path.touch, Path(marker)),
        lambda marker: [np.zeros(2), {"deep": (Malicious(os.mkdir, str(marker)),)}],
        lambda marker: Malicious(np.memmap, str(marker), "u1", "w+", 0, (1,)),
        lambda marker: np.array([Malicious(os.mkdir, str(marker))], dtype=object),
    ],
)
def test_malicious_pickles_are_refused_and_nothing_runs(build, protocol, tmp_path):
    marker, path = tmp_path / "ran", tmp_path / "evil.p"
    path.write_bytes(pickle.dumps(build(marker), protocol))
    with pytest.raises(DataError, match=r"evil\.p.*refused"):
        load_pickle(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    "name", ["os system", "builtins getattr", "numpy fromfile", "numpy.core.multiarray fromfile", "scipy.sparse x.y"]
)
def test_names_outside_the_table_are_refused(name, tmp_path):
    path = tmp_path / "evil.p"
    path.write_bytes(f"c{name.replace(' ', chr(10))}\n.".encode())
    with pytest.raises(DataError, match="refused"):
        load_pickle(path)


def test_a_pickle_cannot_change_the_functions_it_is_given(tmp_path):
    path = tmp_path / "evil.p"
    path.write_bytes(b"cnumpy.core.multiarray\n_reconstruct\n}Vname\nVvalue\nsb.")
    with pytest.raises(DataError, match="tries to change"):
        load_pickle(path)


def test_every_truncation_and_flipped_byte_ends_in_a_data_error_or_plain_content(tmp_path):
    path = tmp_path / "file.p"
    whole = pickle.dumps({"a": np.arange(4), "m": random_sparse(3, 3, 0.5, format="csr", random_state=1)}, 2)
    for cut in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="refused"):
            load_pickle(path)
    random = np.random.RandomState(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[random.randint(len(whole))] ^= struct.pack("B", random.randint(1, 256))[0]
        path.write_bytes(bytes(damaged))
        try:
            load_pickle(path)
        except DataError:
            refused += 1
    assert refused > 50


def test_a_large_allocation_is_not_made_for_a_promised_shape(tmp_path):
    stream = io.BytesIO()
    pickle.dump(np.zeros(3), stream, 2)
    path = tmp_path / "file.p"
    path.write_bytes(stream.getvalue().replace(b"K\x03\x85", b"J\xff\xff\xff\x7f\x85"))
    with pytest.raises(DataError, match="refused"):
        load_pickle(path)
