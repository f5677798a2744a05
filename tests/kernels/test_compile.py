"""How kernels are compiled, stored and found: what makes an object stale, what happens where nothing can be written."""

import ast
import io
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import hgde
from hgde.compiler import build as compiler
from hgde.compiler import load
from hgde.compiler.haste import in_haste
from hgde.kernels import exp_origin, warm_up

SOURCE = str(Path(hgde.__file__).parents[1])
# One step and its gradient, and a digest of the bits.
STEP = """
import hashlib, logging, sys
import torch
logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
from hgde.graph import Graph
from hgde.kernels import EdgeWeights, diffuse, log_origin
g = torch.Generator().manual_seed(0)
graph = Graph.from_edges(torch.randint(0, 400, (2, 1500), generator=g), 400)
z = (0.4 * torch.rand(400, 16, generator=g) - 0.2).requires_grad_()  # randn depends on the processor itself
c, a = torch.tensor(0.7, requires_grad=True), torch.full((graph.num_edges,), 0.1).requires_grad_()
out = diffuse(z, graph, EdgeWeights(a), c, z, (1.0, 0.6, 0.1), "tanh")
found = [out, *torch.autograd.grad(log_origin(out, c).square().sum(), (z, a, c))]
print(hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in found)).hexdigest())
"""


def run(folder, **variables):
    environment = {**os.environ, "PYTHONPATH": SOURCE, "HGDE_CACHE": str(folder), "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run([sys.executable, "-c", STEP], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()[-1], done.stderr


@pytest.mark.slow
def test_same_bits_compiled_loaded_on_threads_and_without_newer_instructions(tmp_path):
    first, _ = run(tmp_path)
    assert len(list(tmp_path.rglob("*.o"))) >= 4
    assert run(tmp_path)[0] == first
    assert run(tmp_path, OMP_NUM_THREADS="2")[0] == first
    assert run(tmp_path, HGDE_CPU_NAME="generic", ATEN_CPU_CAPABILITY="default")[0] == first


@pytest.mark.slow
def test_without_a_folder_to_write_to_kernels_live_in_memory_with_one_warning(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    _, errors = run(blocked)
    assert errors.count("compiled kernels cannot be stored") == 1
    assert "Traceback" not in errors


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty folder of objects, and a memory that has forgotten its kernels."""
    monkeypatch.setenv("HGDE_CACHE", str(tmp_path))
    monkeypatch.setattr(load, "_ready", {})
    monkeypatch.setattr(load, "_awaited", {})
    monkeypatch.setattr(load, "_PATIENCE", 0.05)
    yield tmp_path
    while load._workers:
        time.sleep(0.05)


def test_objects_are_stored_found_and_made_again_when_damaged(store, monkeypatch, caplog):
    built = []

    def converse(process, key):
        built.append(key)
        return compiler.build(*key)

    monkeypatch.setattr(load, "_converse", converse)

    class Stopped:
        stdin = None

    monkeypatch.setattr(load, "_start", lambda: Stopped())
    key = ("sparse.drop", "float64")
    load.function(*key)
    assert built == [key]
    load._ready.clear()
    load.function(*key)
    assert built == [key]
    (file,) = store.rglob("*.o")
    file.write_bytes(file.read_bytes()[:-1])
    load._ready.clear()
    with caplog.at_level(logging.WARNING, "hgde.kernels"):
        load.function(*key)
    assert built == [key, key]
    assert "damaged" in caplog.text


def test_kernels_made_in_haste_are_stored_apart_and_not_made_where_better_ones_are(store):
    def stored():
        return sorted(path.name for path in store.rglob("*.o"))

    key = ("sparse.drop", "float64")
    with in_haste():
        load.function(*key)
    assert stored() == ["sparse.drop@quick-float64.o"]
    load.function(*key)
    assert stored() == ["sparse.drop-float64.o", "sparse.drop@quick-float64.o"]
    load._ready.clear()
    with in_haste():
        load.function(*key)
    assert list(load._ready) == [key]


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_while_kernels_are_compiled_waits_for_nobody_else_s(store):
    key = ("sparse.drop", "float64")
    load.prepare(key[:1], torch.float64)
    child = os.fork()
    if child == 0:
        try:
            load.function(*key)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    load.function(*key)


def test_the_folder_of_objects_changes_with_any_source_and_the_processor(tmp_path, monkeypatch):
    def fingerprint(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        compiler.fingerprint.cache_clear()
        compiler.target.cache_clear()
        return compiler.fingerprint()

    plain = fingerprint()
    assert fingerprint() == plain
    original = compiler.sources()
    written = [path for folder in ("compiler", *compiler.HOMES) for path in (compiler.FOLDER / folder).glob("*.py")]
    for path in written:
        copy = tmp_path / path.relative_to(compiler.FOLDER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    left_out = {path.name for path in written} - {path.name for path in original}
    assert left_out == {"__init__.py", "layout.py", "load.py", "mapped.py", "threads.py"}
    monkeypatch.setattr(compiler, "FOLDER", tmp_path)
    assert fingerprint() == plain
    for path in compiler.sources():
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        assert fingerprint() != plain
        path.write_bytes(before)
    assert fingerprint(HGDE_CPU_NAME="generic") != plain
    monkeypatch.undo()
    compiler.fingerprint.cache_clear()
    compiler.target.cache_clear()


def test_kernels_are_made_of_their_sources_only():
    """Else an object could be used after a change of what it was made of."""
    above = compiler.FOLDER.parent
    known = {".".join(path.relative_to(above).with_suffix("").parts) for path in compiler.sources()}
    for path in compiler.sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hgde"):
                assert all({node.module, f"{node.module}.{name.name}"} & known for name in node.names), path
            elif isinstance(node, ast.Import):
                assert not any(name.name.startswith("hgde") for name in node.names), path


def test_a_worker_that_dies_while_it_hands_over_leaves_no_broken_object(store, monkeypatch):
    class Dying:
        stdin = io.BytesIO()
        stdout = io.BytesIO(json.dumps({"kinds": "p", "size": 100}).encode() + b"\nhalf of it")

    monkeypatch.setattr(load, "_start", lambda: Dying())
    key = ("sparse.drop", "float64")
    load.function(*key)
    kinds, code = load._stored(key)
    assert (kinds, len(code)) == (compiler.build(*key)[0], len(compiler.build(*key)[1]))


def test_a_kernel_asked_for_at_the_last_moment_is_not_forgotten(monkeypatch):
    key = ("sparse.drop", "float64")

    class Late:
        def wait(self, seconds):
            load._waiting[key] = 0  # by a thread that found all workers still there
            return False

    monkeypatch.setattr(load, "_waiting", {})
    monkeypatch.setattr(load, "_workers", 1)
    monkeypatch.setattr(load, "_arrival", Late())
    assert load._next() == key
    assert load._workers == 1


def test_a_kernel_that_cannot_be_compiled_says_why(store):
    with pytest.raises(RuntimeError, match=r"edges.no_such_kernel could not be compiled"):
        load.function("edges.no_such_kernel", "float32")


def test_a_process_that_finds_its_kernels_stored_loads_no_compiler():
    exp_origin(torch.zeros(2, 3), torch.tensor(1.0))
    code = (
        "import sys, torch; from hgde.kernels import exp_origin; exp_origin(torch.zeros(2, 3), torch.tensor(1.0));"
        "exp_origin(torch.ones(2, 3), torch.tensor(1.0)); "
        "print({'hgde.compiler.translate', 'hgde.compiler.values'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["set()"]


def test_unknown_parts_are_refused():
    with pytest.raises(ValueError, match="unknown parts hub; known are"):
        warm_up("hub", dtype=torch.float32)


def test_a_folder_that_cannot_be_looked_into_costs_nothing_but_time(store, monkeypatch):
    asked = []
    monkeypatch.setenv("HGDE_CACHE", str(store / ("x" * 300)))
    monkeypatch.setattr(load, "_ask", lambda key, urgent: asked.append(key))
    load.prepare(["sparse.drop"], torch.float64)
    assert asked == [("sparse.drop", "float64")]
