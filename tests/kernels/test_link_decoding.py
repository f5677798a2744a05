"""Log-odds of links in one pass: values and gradients, precision, the same bits, what is refused."""

import pytest
import torch

from hgde.geometry import Euclidean, PoincareBall
from hgde.kernels import link_logits, pair_squares, reference, set_backend
from hgde.kernels.ops import links
from hgde.kernels.ops.register import registered
from hgde.tasks.decoders import FermiDirac, FermiDiracSettings
from kernels.graphs import points


def problem(nodes=40, count=300, width=5, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randint(0, nodes - 3, (2, count), generator=generator)  # some nodes have none
    pairs[1, :5] = pairs[0, :5]
    numbers = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.7, 2.0, 0.6)]
    return points(nodes, width, dtype=dtype).requires_grad_(), pairs, numbers


def results(z, pairs, numbers, backend):
    out = link_logits(z, pairs, *numbers, backend=backend)
    g = torch.linspace(-1, 2, len(out), dtype=out.dtype)
    return out.detach(), *torch.autograd.grad(out, (z, *numbers), g)


@pytest.mark.parametrize("width", [1, 5, 16])
@pytest.mark.parametrize("count", [0, 1, 64, 300])
def test_fused_equals_plain(count, width):
    z, pairs, numbers = problem(count=count, width=width)
    for a, b in zip(*(results(z, pairs, numbers, backend) for backend in ("fused", "reference")), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_gradcheck():
    z, pairs, numbers = problem(8, 12, 3)
    pairs = pairs[:, 5:]  # a pair of a node with itself is a minimum, where finite differences see only rounding
    assert torch.autograd.gradcheck(lambda z, *n: link_logits(z, pairs, *n, backend="fused"), (z, *numbers))


@pytest.mark.parametrize("width", [1, 5, 16])
@pytest.mark.parametrize("count", [0, 1, 64, 300])
def test_flat_pairs_fused_equal_plain(count, width):
    z, pairs, _ = problem(count=count, width=width)
    found = []
    for backend in ("fused", "reference"):
        out = pair_squares(z, pairs, backend=backend)
        found.append((out.detach(), *torch.autograd.grad(out, z, torch.linspace(-1, 2, count, dtype=out.dtype))))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_gradcheck_of_flat_pairs():
    z, pairs, _ = problem(8, 12, 3)
    assert torch.autograd.gradcheck(lambda z: pair_squares(z, pairs, backend="fused"), z)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.gradgradcheck(lambda z: pair_squares(z, pairs, backend="fused"), z)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_decoder_of_flat_space_is_served(scale):
    z, pairs, _ = problem(dtype=torch.float32)
    space = Euclidean(scale)
    decoder = FermiDirac(FermiDiracSettings(r=1.5, t=0.4), space)
    right = (1.5 - space.dist(z[pairs[0]], z[pairs[1]]).square()) / 0.4
    torch.testing.assert_close(decoder(z, pairs), right, rtol=1e-5, atol=1e-5)
    found = [torch.autograd.grad(out.sum(), z)[0] for out in (decoder(z, pairs), decoder.compare(*z[pairs]))]
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


def test_second_derivatives_are_refused():
    z, pairs, numbers = problem(8, 12, 3)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.gradgradcheck(lambda z, *n: link_logits(z, pairs, *n, backend="fused"), (z, *numbers))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_finds_nothing_wrong(dtype):
    z, pairs, numbers = problem(9, 20, 3, dtype)
    torch.library.opcheck(registered(links.link_logits), (z, pairs, *numbers), rtol=1e-4, atol=1e-5)
    torch.library.opcheck(registered(links.pair_squares), (z, pairs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("distance", [0.1, 1.0, 4.0, 8.0, 11.0])
def test_float32_is_no_worse_than_plain_torch(distance):
    generator = torch.Generator().manual_seed(1)
    x = torch.nn.functional.normalize(torch.randn(60, 16, generator=generator).double(), dim=-1)
    z, (_, pairs, numbers) = (torch.tanh(torch.tensor(distance / 2)) * x).float(), problem(60, 500)
    exact = results(z.double().requires_grad_(), pairs, numbers, "reference")
    found = [results(z.clone().requires_grad_(), pairs, numbers, backend) for backend in ("fused", "reference")]
    for fused, plain, right in zip(*found, exact, strict=True):
        errors = [float((r - right).norm() / right.norm()) for r in (fused, plain)]
        assert errors[0] <= max(1.5 * errors[1], 4 * torch.finfo(torch.float32).eps)


def test_same_bits_at_any_number_of_threads():
    z, pairs, numbers = problem(3000, 40_000, 64, torch.float32)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            flat = torch.autograd.grad(pair_squares(z, pairs, backend="fused").sum(), z)
            found.append((*results(z, pairs, numbers, "fused"), *flat))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def test_points_at_the_limit_take_no_gradient_from_their_own_factor():
    z = torch.tensor([[1 - 1e-13, 0.0], [0.3, 0.2], [-(1 - 1e-13), 0.0]], dtype=torch.float64, requires_grad=True)
    pairs = torch.tensor([[0, 1, 0], [1, 2, 2]])
    fused, plain = (
        torch.autograd.grad(link_logits(z, pairs, 1.0, backend=b).sum(), z)[0] for b in ("fused", "reference")
    )
    assert bool(torch.isfinite(fused).all())
    torch.testing.assert_close(fused, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("learn", [False, True])
def test_the_decoder_is_served_and_trains_its_numbers(learn):
    z, pairs, _ = problem(dtype=torch.float32)
    decoder = FermiDirac(FermiDiracSettings(r=1.5, t=0.4, learn=learn), PoincareBall(0.7, learnable=True))
    found = []
    for backend in ("auto", "reference"):
        set_backend(backend)
        try:
            out = decoder(z, pairs)
        finally:
            set_backend("auto")
        found.append((out.detach(), *torch.autograd.grad(out.sum(), (z, *decoder.parameters()))))
    assert len(found[0]) == (5 if learn else 3)
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(decoder.compare(z[pairs[0]], z[pairs[1]]), found[0][0], rtol=2e-5, atol=2e-5)


def test_pairs_are_checked():
    z, pairs, _ = problem()
    with pytest.raises(IndexError, match="pairs must name nodes from 0 to 39, found 0 to 40"):
        link_logits(z, torch.tensor([[0], [40]]), 1.0, backend="fused")
    with pytest.raises(IndexError, match="found -1 to"):
        link_logits(z, torch.tensor([[-1], [3]]), 1.0, backend="fused")
    with pytest.raises(ValueError, match="pairs must be whole numbers"):
        link_logits(z, pairs.T, 1.0)
    assert reference.link_logits(z, pairs, torch.tensor(1.0), 2.0, 1.0).shape == (300,)
