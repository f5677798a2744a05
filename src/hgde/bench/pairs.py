"""All pairs, their linear-cost form, and links: what is measured of them, each figure beside its bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from hgde.bench import problems
from hgde.bench.measure import Row, medians, peak_bytes
from hgde.bench.problems import Citations
from hgde.kernels import tangent_sum_global, tangent_sum_global_linear, watch_linear_errors

#: Milliseconds of a local-global epoch on Cora, T = 8, before each pair was visited once, on the machine of
#: docs/performance.md; the ratio to it means something on that machine alone.
STORED_EPOCH = 3800.0


def _inputs(nodes: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    z = 0.4 / width**0.5 * torch.randn(nodes, width, generator=generator)
    q, k = (0.2 * torch.randn(nodes, 1, width, generator=generator) for _ in range(2))
    return z, q, k


def _products(z: Tensor, q: Tensor, k: Tensor, both_ways: bool) -> Callable[[], None]:
    """The matrix products alone: distances, scores and the pull; backward two for each of them."""
    nodes = len(z)

    def call() -> None:
        for a in range(0, nodes, 256):
            rows, own = z[a : a + 256], q[a : a + 256, 0]
            for b in range(0, nodes, 2048):
                columns, keys = z[b : b + 2048], k[b : b + 2048, 0]
                gram, score = rows @ columns.T, own @ keys.T
                pull = gram @ columns
                if both_ways:
                    _ = gram @ columns, gram.T @ rows
                    _ = score @ keys, score.T @ own
                    _ = pull @ columns.T, gram.T @ pull

    return call


def all_pairs(quick: bool) -> Iterator[Row]:
    """All pairs, forward and with the gradient, against the matrix products alone; extra memory."""
    nodes = 1_000 if quick else 20_000
    z, q, k = _inputs(nodes, 64)
    leaves = x, y, w = tuple(x.clone().requires_grad_() for x in (z, q, k))

    def both() -> None:
        out = tangent_sum_global(x, y, w, 1.0)
        torch.autograd.grad(out, leaves, torch.ones_like(out))

    calls: dict[str, Callable[[], Any]] = {
        "forward": lambda: tangent_sum_global(z, q, k, 1.0),
        "products": _products(z, q, k, False),
        "both": both,
        "products both ways": _products(z, q, k, True),
    }
    taken = medians(calls, 0.1 if quick else 30)
    detail = ", ".join(f"{name} {1000 * value:.3g} ms" for name, value in taken.items())
    yield Row(
        "pairs-time", f"all pairs, {nodes:,} nodes, width 64: time of the forward pass / bare matrix products",
        taken["forward"] / taken["products"], 2, "at most", detail=detail,
    )  # fmt: skip
    yield Row(
        "pairs-both", f"all pairs, {nodes:,} nodes, width 64: forward and backward / bare matrix products both ways",
        taken["both"] / taken["products both ways"], 2.5, "at most", detail=detail,
    )  # fmt: skip
    extra = peak_bytes(both)
    yield Row(
        "pairs-memory", f"all pairs, {nodes:,} nodes: extra memory, forward and backward",
        None if extra is None else extra / 2**30, 1, "at most", "GiB",
    )  # fmt: skip


def linear(quick: bool) -> Iterator[Row]:
    """The linear-cost form: its distance from the exact sum for points within distance 3, and its time."""
    nodes, width = (1_500 if quick else 20_000), 16
    generator = torch.Generator().manual_seed(0)
    direction = nn.functional.normalize(torch.randn(nodes, width, generator=generator), dim=1)
    z = torch.tanh(1.5 * torch.rand(nodes, 1, generator=generator)) * direction
    q, k = (width**-0.25 * torch.randn(nodes, 1, width, generator=generator) for _ in range(2))
    with watch_linear_errors() as errors:
        found = tangent_sum_global_linear(z, q, k, 1.0)
    right, size = tangent_sum_global(z, q, k, 1.0), 2 / (1 - z.square().sum(1, keepdim=True))
    distance = float((size * (found - right)).norm() / (size * right).norm())
    calls: dict[str, Callable[[], Any]] = {
        "exact": lambda: tangent_sum_global(z, q, k, 1.0),
        "linear": lambda: tangent_sum_global_linear(z, q, k, 1.0),
    }
    taken = medians(calls, 0.1 if quick else 5)
    detail = f"estimated {100 * errors[0]:.1f} %; " + ", ".join(f"{n} {1000 * t:.3g} ms" for n, t in taken.items())
    yield Row(
        "linear-error", f"linear-global, {nodes:,} points within 3: distance from the exact sum / its length",
        100 * distance, 5, "at most", "%", detail,
    )  # fmt: skip


def _learner(data: Citations, changes: dict[str, Any], outputs: int | None, task: Any = None) -> Any:
    from hgde.models import HGDE, Shape
    from hgde.sections import build
    from hgde.tasks.base import Learner, SelectNodes

    model = HGDE(build(HGDE.Settings, changes), Shape(int(data.features.shape[1]), data.graph.num_nodes, outputs))
    model.prepare(data.graph)
    head = SelectNodes() if task is None else task.head(model, data.graph.num_nodes)
    return Learner(model, head, outputs).train()


def _trained(learner: Any, loss: Callable[[], Tensor]) -> Callable[[], None]:
    from hgde import randomness
    from hgde.training.optimisers import Optimisers
    from hgde.training.settings import TrainingSettings

    optimisers, source = Optimisers(learner, TrainingSettings()), randomness.make_generator(0)

    def epoch() -> None:
        optimisers.zero_grad()
        with randomness.use(source):
            loss().backward()
        optimisers.step(1000)  # long after the warm-up

    return epoch


def node_epoch(data: Citations, changes: dict[str, Any]) -> Callable[[], None]:
    learner = _learner(data, changes, int(data.labels.max()) + 1)
    truth = data.labels[data.train]
    return _trained(learner, lambda: nn.functional.cross_entropy(learner(data.features, data.graph, data.train), truth))


def link_epoch(data: Citations, changes: dict[str, Any]) -> Callable[[], None]:
    """Positives of the training split and as many fresh negatives, as the task trains on them."""
    from hgde.data.splits import link_split
    from hgde.tasks.base import Part, Problem
    from hgde.tasks.links import LinkPrediction, LinkSettings

    task, split = LinkPrediction(LinkSettings()), link_split(data.graph, seed=0)
    learner = _learner(data, changes, None, task)
    ones = torch.ones(split.train_pos.shape[1], dtype=torch.int64)
    problem = Problem(task, split.graph, {"train": Part(split.train_pos, ones)}, "", "", data.features, split)
    return _trained(learner, lambda: task.loss(learner, problem))


def local_global(quick: bool) -> Iterator[Row]:
    """A local-global epoch on Cora against the stored time."""
    data = problems.citations("cora")
    epoch = node_epoch(data, {"width": 16, "time": 1.0 if quick else 8.0, "diffusivity": "local-global"})
    taken = 1000 * medians({"epoch": epoch}, 0.1 if quick else 5)["epoch"]
    yield Row(
        "local-global", "local-global epoch on Cora, width 16, T = 8: stored version / now",
        None if quick else STORED_EPOCH / taken, 8, "at least", detail=f"{taken:.0f} ms, stored {STORED_EPOCH:.0f} ms",
    )  # fmt: skip


def links(quick: bool) -> Iterator[Row]:
    """A link-prediction epoch against a node epoch on PubMed."""
    data = problems.citations("cora" if quick else "pubmed")
    changes = {"width": 64, "time": 1.0 if quick else 8.0}
    every = problems.learning_from_all(data)
    calls = {
        "links": link_epoch(data, changes),
        "nodes": node_epoch(data, changes),
        "all nodes": node_epoch(every, changes),
    }
    taken = medians(calls, 0.1 if quick else 8)
    detail = ", ".join(f"{name} {1000 * value:.3g} ms" for name, value in taken.items())
    what = "link-prediction epoch on PubMed, width 64, T = 8 / node epoch"
    yield Row("links", what, taken["links"] / taken["nodes"], 1.1, "at most", detail=detail)
    # A node epoch works on no more rows than its 60 labels depend on; links lie everywhere.
    value = taken["links"] / taken["all nodes"]
    yield Row("links-all", f"{what} that learns from all nodes", value, None, "report", detail=detail)


MEASUREMENTS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "pairs": all_pairs,
    "linear": linear,
    "local-global": local_global,
    "links": links,
}
