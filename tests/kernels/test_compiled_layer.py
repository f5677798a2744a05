"""``HGDEConv`` as ``torch.compile`` and ``torch.export`` see it: one graph, the values and gradients of eager."""

import pytest
import torch

from hgde import HGDEConv
from kernels.graphs import awkward, vectors

SETTINGS = {
    "isotropic": {},
    "attention": {"diffusivity": "attention", "heads": 2},
    "ham": {"method": "ham"},
    "symmetric": {"diffusivity": "symmetric", "eta": None},
    "hrk4": {"method": "hrk4"},
}
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in list(SETTINGS)[1:]]


def problem(name):
    torch.manual_seed(0)
    graph = awkward(True, 20)
    return HGDEConv(5, 8, **SETTINGS[name]), (vectors(20, 5, dtype=torch.float32), graph.edge_index)


def outcome(module, layer, inputs):
    layer.zero_grad()
    out = module(*inputs)
    out.square().sum().backward()
    return [out.detach(), *(p.grad.clone() for p in layer.parameters() if p.grad is not None)]


@pytest.mark.parametrize("name", ["isotropic", *SLOW])
def test_compiled_in_one_graph_with_the_values_and_gradients_of_eager(name):
    layer, inputs = problem(name)
    expected = outcome(layer, layer, inputs)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for _ in range(2):  # the second call makes the graph's tensors anew
        found = outcome(compiled, layer, inputs)
        assert len(found) == len(expected) > 3
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_compiled_by_inductor():
    layer, inputs = problem("isotropic")
    expected = outcome(layer, layer, inputs)
    for a, b in zip(outcome(torch.compile(layer, fullgraph=True), layer, inputs), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["isotropic", *SLOW])
def test_exported(name):
    layer, inputs = problem(name)
    program = torch.export.export(layer, inputs)
    assert ("hgde.attend" if name == "attention" else "hgde.diffuse") in str(program.graph)
    torch.testing.assert_close(program.module()(*inputs), layer(*inputs), rtol=1e-4, atol=1e-6)
    other = (inputs[0] + 0.1, inputs[1].flip(0).contiguous())
    torch.testing.assert_close(program.module()(*other), layer(*other), rtol=1e-4, atol=1e-6)
