"""Weights between all pairs never become a table: peak memory is measured in a process of its own."""

import os
import subprocess
import sys

import pytest

MEASURE = """
import resource, sys
import torch
from hgde.diffusion import GraphFlow, make_diffusivity
from hgde.geometry import PoincareBall
from hgde.graph import Graph

torch.manual_seed(0)

def evaluate(num_nodes, backward):
    graph = Graph.from_edges(torch.randint(0, num_nodes, (2, 3 * num_nodes)), num_nodes)
    flow = GraphFlow(PoincareBall(1.0, learnable=True), make_diffusivity("global", 4))
    z = (0.1 * torch.randn(num_nodes, 4)).requires_grad_()
    out = flow(z, graph)
    assert torch.isfinite(out).all()
    if backward:
        out.square().sum().backward()
        assert torch.isfinite(z.grad).all()

evaluate(100, True)  # loads and compiles what is needed
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
evaluate(int(sys.argv[1]), sys.argv[2] == "backward")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


# The backward pass holds a fixed number of pairs at once, whatever the number of nodes; 5,000 show it in a moment.
@pytest.mark.parametrize(("num_nodes", "passes"), [(20_000, "forward"), (5_000, "backward")])
@pytest.mark.slow
def test_all_pairs_stay_below_one_gib(num_nodes, passes):
    pytest.importorskip("resource", reason="peak memory is read the POSIX way")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(num_nodes), passes],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1024, "MiB; a single table of all pairs of 20,000 nodes would take 1,526"
