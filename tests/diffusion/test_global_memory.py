"""Weights between all pairs never become a table: the memory of 20,000 nodes is measured in a process of its own."""

import os
import subprocess
import sys

MEASURE = """
import resource
import torch
from hgde.diffusion import GraphFlow, make_diffusivity
from hgde.geometry import PoincareBall
from hgde.graph import Graph

torch.manual_seed(0)
num_nodes = 20_000

def evaluate(n):
    graph = Graph.from_edges(torch.randint(0, n, (2, 3 * n)), n)
    flow = GraphFlow(PoincareBall(1.0, learnable=True), make_diffusivity("global", 4))
    z = (0.1 * torch.randn(n, 4)).requires_grad_()
    flow(z, graph).square().sum().backward()
    assert torch.isfinite(z.grad).all()

evaluate(100)  # loads and compiles what is needed
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
evaluate(num_nodes)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_forward_and_backward_of_20000_nodes_stay_below_one_gib():
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", MEASURE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1024, "MiB; a table of all pairs alone would take 1,526"
