"""How kernels become machine code: Python's syntax tree is translated, LLVM optimises, a worker process does both.

:func:`build` makes an object of a kernel (:mod:`~hgde.compiler.dialect`). The program is optimised as a whole.
Since no arithmetic may be reordered, its results have the same bits at any level of optimisation. A process that finds
its kernels on disk translates nothing.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import BinaryIO

from hgde.compiler.haste import QUICK

FOLDER = Path(__file__).parents[1]
#: Where kernels are written. A kernel is named by its file, whose name no other has, and its function.
HOMES = ("kernels/cpu", "graph/measures/kernels")
#: What a worker process runs: the packages above kernels without their ``__init__``, which would load torch.
WORKER = """
import os.path, sys, types
for name in sys.argv[2:]:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [os.path.join(sys.argv[1], *name.split("."))]
from hgde.compiler.build import serve
serve()
"""
#: What machine code may leave to the C library: ``fma`` on processors without it, copies, giving way to others, memory.
_KNOWN = ("llvm.", "fma", "mem", "sched_yield", "calloc", "free")
_KINDS = {"Int": "i", "Double": "d", "Ints": "p", "Wholes": "p", "Doubles": "p", "Reals": "p"}
_BODY = "body"
_NOT_COMPILED = ("__init__.py", "layout.py", "load.py", "mapped.py", "threads.py")


@cache
def target() -> tuple[str, str]:
    """Name and features of the processor compiled for; ``HGDE_CPU_NAME`` and ``HGDE_CPU_FEATURES`` change them."""
    import llvmlite.binding as llvm

    name = os.environ.get("HGDE_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("HGDE_CPU_FEATURES")
    if features is None:
        features = "" if name == "generic" else llvm.get_host_cpu_features().flatten()
    return name, features


def sources() -> list[Path]:
    """The files that kernels are made of: the passes and what compiles them, without what only runs them."""
    found = [path for folder in ("compiler", *HOMES) for path in sorted(FOLDER.glob(f"{folder}/*.py"))]
    return [path for path in found if path.name not in _NOT_COMPILED]


@cache
def fingerprint() -> str:
    """Changes with any source of kernels, the compilers, Python and the processor: what an object depends on."""
    from importlib.metadata import version  # which a worker has no use for

    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.name.encode() + path.read_bytes())
    made_with = (version("llvmlite"), sys.version, sys.platform, *target())
    digest.update(json.dumps(made_with).encode())
    return digest.hexdigest()[:24]


def build(name: str, real: str) -> tuple[str, bytes]:
    """The object of a kernel such as ``"edges.forward"`` for ``real`` ``"float32"`` or ``"float64"``.

    ``"edges.forward@16"`` is that kernel made for rows of width ``d = 16``: loops over a row are then written out and
    rows stay in registers. ``"edges.forward@quick"`` is made in half the time (:mod:`~hgde.compiler.haste`).

    Returns its arguments' kinds, one letter each (``i`` whole number, ``d`` double, ``p`` pointer), and the object,
    which exports one symbol, :func:`symbol` of the name: the kernel as :mod:`~hgde.compiler.jobs` calls it.
    """
    import llvmlite.binding as llvm

    from hgde.compiler.entry import entry
    from hgde.compiler.scopes import signature
    from hgde.compiler.translate import translate

    general, _, variant = name.partition("@")
    is_quick = variant == QUICK
    sizes = {"d": int(variant)} if variant and not is_quick else {}
    module, _, function = general.partition(".")
    home = next(home for home in HOMES if (FOLDER / home / f"{module}.py").exists())
    python = getattr(importlib.import_module(f"hgde.{home.replace('/', '.')}.{module}"), function)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    kinds = "".join(_KINDS[kind] for kind in signature(python))
    code = llvm.parse_assembly(entry(symbol(name, real), _BODY, kinds))
    code.link_in(llvm.parse_assembly(translate(python, _BODY, real, sizes)))
    for defined in code.functions:
        if not defined.is_declaration and defined.name != symbol(name, real):
            defined.linkage = "internal"
    cpu, features = target()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=cpu, features=features, opt=1 if is_quick else 3, reloc="pic", jit=True
    )
    code.triple, code.data_layout = machine.triple, str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=1 if is_quick else 3)
    tuning.loop_vectorization = tuning.slp_vectorization = not is_quick
    tuning.loop_interleaving = tuning.loop_unrolling = not is_quick
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(code, passes)
    needed = [f.name for f in code.functions if f.is_declaration and not f.name.startswith(_KNOWN)]
    if needed:
        raise TypeError(f"kernel {name} calls {', '.join(needed)}, which is not there on every machine")
    return kinds, machine.emit_object(code)


def symbol(name: str, real: str) -> str:
    return f"hgde_{name.replace('.', '_').replace('@', '_')}_{real}"


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
    """What a worker needs to find this module and kernels: the folder of the package, and the packages above them."""
    above = {".".join(("hgde", *home.split("/")[:n])) for home in HOMES for n in range(len(home.split("/")))}
    return [str(FOLDER.parent), *sorted(above)]
