"""The Triton step in Triton's interpreter, in a process of its own: it is chosen when Triton is imported."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hgde

CHECK = Path(__file__).with_name("triton_checks.py")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton is not installed"),
]
#: Code for a GPU made without one; nothing is run.
COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from hgde.kernels.triton import edges
real, double, whole, long = "*fp32", "*fp64", "*i32", "*i64"
forward = (real, double, real, long, long, double, double, "i32")
backward = (real, double, double, double, double, real, whole, whole, whole, whole, double, double, double, "i32")
for kernel, kinds in ((edges.tangent_sum_kernel, forward), (edges.tangent_sum_backward_kernel, backward)):
    names = kernel.arg_names
    constants = {"CHUNK": edges.CHUNK, "WIDTH": 16}
    signature = dict(zip(names, kinds)) | dict.fromkeys(constants, "constexpr")
    made = triton.compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 80, 32))
    print(".entry" in made.asm["ptx"])
"""


def test_the_kernels_compile_for_a_gpu(tmp_path):
    paths = os.pathsep.join([str(Path(hgde.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    plain = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        env=plain | {"PYTHONPATH": paths, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["True", "True"], done.stdout + done.stderr


def test_the_step_in_the_interpreter():
    paths = os.pathsep.join(
        [str(Path(hgde.__file__).parents[1]), str(CHECK.parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CHECK)],
        env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
