"""Which arrays are asked huge pages for, when, and for which part of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from hgde import Graph
from hgde.kernels import EdgeWeights, diffuse
from hgde.kernels.cpu import pages

PAGE = 2**21


class System:
    """Stands for the C library and writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int, int]] = []

    def madvise(self, begin: object, size: object, advice: int) -> None:
        self.told.append((begin.value, size.value, advice))


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    system = System()
    monkeypatch.setattr(pages, "_system", system)
    monkeypatch.setattr(pages, "_page", PAGE)
    return system


def test_whole_pages_of_large_arrays_only(system: System) -> None:
    pages.empty(pages.SMALLEST // 4 - 1, torch.float32)
    assert not system.told
    large = pages.empty((3, pages.SMALLEST), torch.float64)
    (begin, size, _), end = system.told[0], large.data_ptr() + 8 * large.numel()
    assert (begin % PAGE, size % PAGE) == (0, 0)
    assert large.data_ptr() <= begin < large.data_ptr() + PAGE
    assert end - PAGE < begin + size <= end


def test_what_comes_again_is_moved_once(system: System) -> None:
    points = torch.ones(2 * pages.SMALLEST)
    assert pages.settle(points) is points
    assert not system.told
    for _ in range(3):
        pages.settle(points)
    pages.settle(torch.ones(2 * pages.SMALLEST))
    assert len(system.told) == 1


def test_without_huge_pages_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_system", None)
    large = pages.settle(pages.settle(pages.empty_like(torch.ones(4, pages.SMALLEST))))
    assert large.shape == (4, pages.SMALLEST)


@pytest.fixture
def limit() -> Iterator[None]:
    before = pages.most_kept
    yield
    pages.keep_at_most(before)


@pytest.mark.usefixtures("limit")
def test_large_arrays_that_were_freed_come_again() -> None:
    pages.keep_at_most(2 * pages.SMALLEST_KEPT)
    shape = (4, pages.SMALLEST_KEPT // 16)
    first = pages.empty(shape, torch.float32)
    place, part = first.data_ptr(), first[1]
    del first
    other = pages.empty(shape, torch.float32)
    assert other.data_ptr() != place, "a part of the first is still in use"
    del part
    again = pages.empty(shape[::-1], torch.float32)
    assert (again.data_ptr(), again.shape) == (place, shape[::-1])


@pytest.mark.usefixtures("limit")
def test_no_more_is_kept_than_a_limit() -> None:
    pages.keep_at_most(3 * pages.SMALLEST_KEPT)
    arrays = [pages.empty(pages.SMALLEST_KEPT + number, torch.uint8) for number in range(4)]
    while arrays:
        del arrays[0]
    sizes = [kept.numel() for kept in pages._kept.values()]
    assert sizes == [pages.SMALLEST_KEPT + 2, pages.SMALLEST_KEPT + 3]
    pages.give_back()
    assert not pages._kept


def test_values_and_gradients_are_the_same_where_pages_move() -> None:
    """The same call three times: points in small pages, moved, and at rest."""
    nodes, width = pages.SMALLEST // 32, 16
    ring = torch.arange(nodes)
    graph = Graph.from_edges(torch.stack([ring, (ring + 1) % nodes]), nodes)
    z = (0.1 * torch.randn(nodes, width, generator=torch.Generator().manual_seed(0))).requires_grad_()
    weights, results = EdgeWeights(torch.full((2 * nodes,), 0.25)), []
    for _ in range(3):
        out = diffuse(z, graph, weights, 1.0, z, (1.0, 0.6, 0.1))
        results.append((out.detach(), *torch.autograd.grad(out.square().sum(), z)))
    for out, gradient in results[1:]:
        assert torch.equal(out, results[0][0])
        assert torch.equal(gradient, results[0][1])
