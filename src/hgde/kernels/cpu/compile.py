"""How kernels become machine code: numba writes the program, LLVM turns it into an object, a worker process does both.

A *kernel* is a function in one of this folder's modules, marked by :func:`kernel`; its annotations are its signature:

    Int      a whole number             Ints     pointer to 32-bit whole numbers
    Double   a double                   Doubles  pointer to doubles
    Reals    pointer to numbers of the kernel's dtype: there is one object for float32 and one for float64

:func:`build` makes an object of it. The program is translated without optimisation by numba and optimised once, as a
whole, by LLVM. Since no arithmetic may be reordered, its results have the same bits at any level of optimisation.
This module imports numba only where something is compiled; a process that finds its kernels on disk never does.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

Int: TypeAlias = int
Double: TypeAlias = float
Ints: TypeAlias = Any
Doubles: TypeAlias = Any
Reals: TypeAlias = Any
FOLDER = Path(__file__).parent
#: What a worker process runs: the packages above this folder without their ``__init__``, which would load torch.
WORKER = """
import sys, types
for name, path in (("hgde", sys.argv[1]), ("hgde.kernels", sys.argv[2])):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [path]
from hgde.kernels.cpu.compile import serve
serve()
"""
#: What machine code may leave to the C library: ``fma`` on processors without it, copies, and giving way to others.
_KNOWN = ("llvm.", "fma", "mem", "sched_yield")
_OPTIONS = {"nogil": True, "error_model": "numpy", "boundscheck": False}
_NOT_COMPILED = ("__init__.py", "layout.py", "load.py", "threads.py")
#: Building blocks are never called from Python.
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: Callable[..., None]) -> Callable[..., None]:
    """Mark a function as a kernel; it is compiled when it is first called for."""
    return function


def inlined(function: Callable[..., Any]) -> Any:
    """A building block of kernels, always merged into its caller so that the caller's loops vectorise."""
    from numba import njit

    return njit(forceinline=True, **_OPTIONS, **_INNER)(function)


def block(function: Callable[..., Any]) -> Any:
    """A larger building block, compiled once for each kernel that uses it."""
    from numba import njit

    return njit(**_OPTIONS, **_INNER)(function)


@cache
def target() -> tuple[str, str]:
    """Name and features of the processor compiled for; numba's own variables change them."""
    import llvmlite.binding as llvm

    name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        features = "" if name == "generic" else llvm.get_host_cpu_features().flatten()
    return name, features


def sources() -> list[Path]:
    """The files that kernels are made of, all of this folder but those that only run them."""
    return [path for path in sorted(FOLDER.glob("*.py")) if path.name not in _NOT_COMPILED]


@cache
def fingerprint() -> str:
    """Changes with any source of kernels, the compilers, Python and the processor: what an object depends on."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.name.encode() + path.read_bytes())
    made_with = (version("numba"), version("llvmlite"), sys.version, sys.platform, *target())
    digest.update(json.dumps(made_with).encode())
    return digest.hexdigest()[:24]


def build(name: str, real: str) -> tuple[str, bytes]:
    """The object of a kernel such as ``"edges.forward"`` for ``real`` ``"float32"`` or ``"float64"``.

    Returns its arguments' kinds, one letter each (``i`` whole number, ``d`` double, ``p`` pointer), and the object,
    which exports one symbol, :func:`symbol` of the name.
    """
    import llvmlite.binding as llvm
    import numba

    module, _, function = name.partition(".")
    python = getattr(importlib.import_module(f"hgde.kernels.cpu.{module}"), function)
    number = numba.types.float32 if real == "float32" else numba.types.float64
    pointer = numba.types.CPointer
    kinds = {
        "Int": ("i", numba.types.int64),
        "Double": ("d", numba.types.float64),
        "Ints": ("p", pointer(numba.types.int32)),
        "Doubles": ("p", pointer(numba.types.float64)),
        "Reals": ("p", pointer(number)),
    }
    given = [kinds[str(parameter.annotation)] for parameter in inspect.signature(python).parameters.values()]
    entry = numba.cfunc(numba.types.void(*(kind for _, kind in given)), **_OPTIONS)(python)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    code = llvm.parse_assembly(entry.inspect_llvm())
    for defined in code.functions:
        if defined.is_declaration:
            continue
        if defined.name == entry.native_name:
            defined.name = symbol(name, real)
        else:
            defined.linkage = "internal"
    cpu, features = target()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", jit=True
    )
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(code, passes)
    open_ends = [f.name for f in code.functions if f.is_declaration and not f.name.startswith(_KNOWN)]
    if open_ends:
        raise TypeError(f"kernel {name} allocates or can raise: it needs {', '.join(open_ends)}")
    return "".join(letter for letter, _ in given), machine.emit_object(code)


def symbol(name: str, real: str) -> str:
    return f"hgde_{name.replace('.', '_')}_{real}"


def serve() -> None:
    """The worker's loop: names on standard input, one per line; a header and an object on standard output for each."""
    gc.disable()  # a compiler makes many objects and a worker lives for seconds
    output: BinaryIO = sys.stdout.buffer
    sys.stdout = sys.stderr
    for line in sys.stdin:
        try:
            kinds, code = build(*line.split())
            header = {"kinds": kinds, "size": len(code)}
        except Exception:
            code, header = b"", {"error": traceback.format_exc(), "size": 0}
        output.write(json.dumps(header).encode() + b"\n" + code)
        output.flush()


def packages() -> list[str]:
    """The two folders a worker needs to find this module by its name."""
    return [str(FOLDER.parent.parent), str(FOLDER.parent)]
