"""Files that are small and claim to be large, graphs with a hub: bounded, quick, and one can stop it."""

import gzip
import io
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pytest
import torch

from hgde.data import DataError, read_graph
from hgde.data import errors as limits
from hgde.files import WriteError, cache_folder, is_private, make_private, private_folder, read_problem
from hgde.geometry.numerics import count_projections, record_projections
from hgde.graph import Graph
from hgde.graph.graph import GraphError
from hgde.graph.measures.ricci import ollivier_ricci

LAUGHS = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<graphml><graph edgedefault="undirected"><node id="&b;"/></graph></graphml>"""


@pytest.mark.parametrize("content", [LAUGHS, '<!DOCTYPE x SYSTEM "file:///etc/passwd"><graphml/>', "<a>" * 500])
def test_xml_that_unfolds_names_files_or_never_ends(content, tmp_path):
    (tmp_path / "g.graphml").write_text(content)
    with pytest.raises(DataError, match=r"DOCTYPE|nested deeper"):
        read_graph(tmp_path / "g.graphml")


def test_packed_files_that_unfold(tmp_path, monkeypatch):
    """Neither a frame that says how large it is nor one that does not may fill memory."""
    zstandard = pytest.importorskip("zstandard", reason="an optional package reads .zst")
    monkeypatch.setattr(limits, "LARGEST_UNPACKED", 1 << 20)
    bomb = b"source,target\n" + b"0,1\n" * (4 << 20)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(bomb))
    (tmp_path / "b.csv.zst").write_bytes(zstandard.ZstdCompressor(write_content_size=True).compress(bomb))
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    (tmp_path / "c.csv.zst").write_bytes(compressor.compress(bomb) + compressor.flush())
    for name in ("a.csv.gz", "b.csv.zst", "c.csv.zst"):
        with pytest.raises(DataError, match="unpacks to more than"):
            read_graph(tmp_path / name)


def test_frames_one_after_the_other(tmp_path):
    zstandard = pytest.importorskip("zstandard", reason="an optional package reads .zst")
    frames = [zstandard.compress(part) for part in (b"source,target\n", b"0,1\n" * 3000, b"1,2\n")]
    (tmp_path / "e.csv.zst").write_bytes(b"".join(frames))
    assert read_graph(tmp_path / "e.csv.zst").num_nodes == 3
    (tmp_path / "e.csv.zst").write_bytes(b"".join(frames)[:-3])
    with pytest.raises(DataError, match="breaks off"):
        read_graph(tmp_path / "e.csv.zst")


def test_an_array_that_says_it_is_a_terabyte(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (2, 1 << 36)})
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("edge_index.npy", header.getvalue() + bytes(32))
    with pytest.raises(DataError, match="says it holds"):
        read_graph(tmp_path / "g.npz")


def test_a_parquet_file_of_one_value_a_billion_times(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow", reason="an optional package reads Parquet")
    parquet = pytest.importorskip("pyarrow.parquet", reason="an optional package reads Parquet")
    monkeypatch.setattr(limits, "LARGEST_UNPACKED", 1 << 20)
    column = pyarrow.array(np.zeros(1 << 20, dtype=np.int64))
    table = pyarrow.table({"source": column, "target": column})
    parquet.write_table(table, tmp_path / "e.parquet", compression="zstd")
    assert (tmp_path / "e.parquet").stat().st_size < 1 << 14
    with pytest.raises(DataError, match="unpacks to more than"):
        read_graph(tmp_path / "e.parquet")


@pytest.mark.parametrize("number", [2**31, 10**18])
def test_node_numbers_that_are_ids(number, tmp_path):
    with pytest.raises(GraphError, match="number the nodes from 0"):
        Graph.from_edges([(0, number)])
    with pytest.raises(GraphError, match="at most"):
        Graph.from_edges([(0, 1)], num_nodes=number)
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0], [number]]))
    with pytest.raises(DataError):
        read_graph(tmp_path / "g.npz")
    (tmp_path / "e.csv").write_text(f"source,target\n0,{number}\n")
    assert read_graph(tmp_path / "e.csv").num_nodes == 2, "names in a table may be any"


def test_features_with_a_quadrillion_columns(tmp_path):
    arrays = {"data": [1.0], "indices": [0], "indptr": [0, 1, 1], "shape": [2, 10**15]}
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0], [1]]), **{f"feat_{k}": v for k, v in arrays.items()})
    with pytest.raises(DataError, match="columns for 1 entries"):
        read_graph(tmp_path / "g.npz")


def test_pipes_devices_folders_and_links(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_problem(tmp_path / "file", own=tmp_path) is None
    assert "is a link" in (read_problem(tmp_path / "link", own=tmp_path) or "")
    assert read_problem(tmp_path) == "it is a folder"
    assert "larger than" in (read_problem(tmp_path / "file", most=0) or "")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "e.csv")
        with pytest.raises(DataError, match="not a regular file"):
            read_graph(tmp_path / "e.csv")


def test_wide_tables_are_not_quadratic(tmp_path):
    """Ten times the columns take about ten times as long, not a hundred times."""
    seconds = []
    for count in (2_000, 20_000):
        header = ",".join(f"c{k}" for k in range(count))
        (tmp_path / "e.csv").write_text(f"{header},source,target\n" + "1," * count + "0,1\n")
        began = time.process_time()
        read_graph(tmp_path / "e.csv")
        seconds.append(time.process_time() - began)
    assert seconds[1] < 40 * max(seconds[0], 0.02)


def test_curvature_of_a_star_and_of_two_hubs():
    """50,000 leaves: closed forms, no search, little memory."""
    star = Graph.from_edges([(0, k) for k in range(1, 50_001)])
    assert torch.allclose(ollivier_ricci(star, progress=False), torch.tensor(2e-5).double())
    hubs = Graph.from_edges([(0, 1)] + [(k % 2, k) for k in range(2, 4_002)])
    between = ollivier_ricci(hubs, progress=False)[(hubs.rows == 0) & (hubs.indices == 1)]
    assert float(between) == pytest.approx(2 / 2001 * 2 - 1, abs=2e-3)


SEARCH = """
import torch
from hgde.graph import Graph
from hgde.graph.measures.ricci import ollivier_ricci
ollivier_ricci(Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)]))
side = 1500
pairs = torch.cartesian_prod(torch.arange(side), torch.arange(side, 2 * side)).T
graph = Graph.from_edges(pairs[:, torch.rand(pairs.shape[1], generator=torch.Generator().manual_seed(0)) < 0.5])
print("begun", flush=True)
ollivier_ricci(graph, progress=False)
"""


def as_in_a_terminal():
    """A shell starts what runs in the background with SIGINT ignored, and every process below inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_curvature_can_be_interrupted():
    command = [sys.executable, "-c", SEARCH]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=as_in_a_terminal
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(3)
            assert process.poll() is None, "it would have taken minutes"
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=30)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in error


def test_projections_are_counted_for_one_thread_alone():
    counts = {}

    def work(number):
        with count_projections() as counter:
            for _ in range(200):
                record_projections(torch.tensor(number))
            counts[number] = counter.total

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    with count_projections() as outer:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts == {number: 200 * number for number in range(1, 5)}
    assert outer.total == 0


def test_what_is_executed_is_read_from_private_folders_only(tmp_path):
    make_private(tmp_path / "kernels" / "one")
    assert is_private(tmp_path / "kernels" / "one")
    (tmp_path / "kernels" / "one").chmod(0o777)
    assert not is_private(tmp_path / "kernels" / "one")
    make_private(tmp_path / "kernels" / "one")
    assert is_private(tmp_path / "kernels" / "one"), "ours, and put right"
    if hasattr(os, "chown") and os.getuid() == 0:
        os.chown(tmp_path / "kernels", 54321, 54321)
        assert not is_private(tmp_path / "kernels" / "one")
        assert private_folder(tmp_path, "kernels") == tmp_path / "kernels-0"


def test_a_user_without_a_home_has_a_cache_all_the_same(monkeypatch):
    for name in ("HOME", "HGDE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert cache_folder().name.startswith("hgde-")
    assert issubclass(WriteError, RuntimeError)
