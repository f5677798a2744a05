"""The pictures of the documentation: ``python docs/scripts/pictures.py [NAME ...]`` writes them to ``docs/images``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle

from hgde import Flow, Graph, GraphFlow, PoincareBall, odeint
from hgde.diffusion import make_diffusivity
from hgde.report.figures import COLOURS, chords

IMAGES = Path(__file__).resolve().parent.parent / "images"
BALL = PoincareBall(c=1.0).double()


def disk(axes, title=""):
    axes.add_patch(Circle((0, 0), 1.0, facecolor="#fbfaf7", edgecolor="#444444", linewidth=1.2, zorder=0))
    axes.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal")
    axes.set_title(title, fontsize=10)
    axes.axis("off")


def save(figure, name):
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / f"{name}.png", dpi=110, bbox_inches="tight")
    plt.close(figure)


def geodesics(axes, points, pairs, **style):
    ends = points.numpy()[np.asarray(pairs)]
    axes.add_collection(LineCollection(list(chords(ends[0], ends[1], 24)), **style))


def point(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def ball():
    """Steps of the same length look shorter and shorter; a binary tree has room."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4.2))
    disk(left, "equal steps along geodesics")
    for angle in np.linspace(0, 2 * np.pi, 12, endpoint=False):
        way = point(np.cos(angle), np.sin(angle))
        steps = torch.stack([BALL.expmap0(0.25 * k * way) for k in range(1, 12)])
        left.plot(*steps.numpy().T, color="#bbbbbb", linewidth=0.8)
        left.scatter(*steps.numpy().T, s=10, color=COLOURS[0], zorder=2)
    disk(right, "a binary tree, every edge of the same length")
    points, pairs = tree()
    geodesics(right, points, pairs, colors=COLOURS[2], linewidths=0.8)
    right.scatter(*points.numpy().T, s=5, color="#333333", zorder=2)
    save(figure, "ball")


def tree(depth=7, length=1.0):
    """A binary tree grown from the origin, all edges of one length."""
    points, pairs, layer = [point(0, 0)], [], [(0, None)]
    for level in range(depth):
        grown = []
        for node, parent in layer:
            x = points[node]
            if parent is None:
                ways = [point(np.cos(a), np.sin(a)) for a in (0.3, 0.3 + 2 * np.pi / 3, 0.3 + 4 * np.pi / 3)]
            else:
                back = BALL.logmap(x, points[parent])
                angle = float(torch.atan2(back[1], back[0])) + np.pi
                ways = [point(np.cos(angle + s), np.sin(angle + s)) for s in (-0.75, 0.75)]
            for way in ways:
                factor = 2 / (1 - float((x * x).sum()))
                points.append(BALL.expmap(x, length * 1.1 / factor * way))
                pairs.append((node, len(points) - 1))
                grown.append((len(points) - 1, node))
        layer = grown if level < depth - 1 else []
    return torch.stack(points), np.array(pairs).T


def flow():
    """Nodes of a graph along the diffusion: neighbours meet, what is far apart stays so for long."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.arange(60) % 3
    centres = torch.stack([point(np.cos(a), np.sin(a)) for a in (0.5, 2.6, 4.7)])
    z = BALL.expmap0(0.7 * centres[labels] + 0.45 * torch.randn(60, 2, generator=generator, dtype=torch.float64))
    same = [(i, j) for i in range(60) for j in range(i) if labels[i] == labels[j]]
    chosen = torch.randperm(len(same), generator=generator)[:110].tolist()
    pairs = torch.tensor([same[k] for k in chosen] + [(0, 1), (1, 2), (4, 5)]).T
    graph = Graph.from_edges(pairs, 60)
    flowing = GraphFlow(BALL, make_diffusivity("isotropic", 2), eta=None).double()
    with torch.no_grad():
        way = odeint(Flow(flowing.bind(z, graph)), z, [0.1 * k for k in range(41)], manifold=BALL, method="rk4").states
    figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.8))
    for axes, time in zip(panels, (0.0, 1.0, 4.0), strict=True):
        disk(axes, f"t = {time:g}")
        now = way[round(time * 10)]
        geodesics(axes, now, pairs.numpy(), colors="#999999", linewidths=0.5, alpha=0.6)
        for k in range(3):
            axes.scatter(*now[labels == k].numpy().T, s=16, color=COLOURS[k], zorder=3)
        for node in range(0, 60, 4):
            axes.plot(*way[: round(time * 10) + 1, node].numpy().T, color=COLOURS[int(labels[node])], linewidth=0.7)
    save(figure, "flow")


def step():
    """One step: logarithms of the neighbours, their weighted sum, the exponential map, the residual."""
    figure, axes = plt.subplots(figsize=(4.8, 4.8))
    disk(axes)
    z = point(-0.25, 0.1)
    around = torch.stack([point(0.45, 0.55), point(0.62, -0.2), point(0.0, -0.65)])
    logs = BALL.logmap(z.expand_as(around), around)
    total = logs.mean(0)
    new = BALL.expmap(z, total)
    for y, v in zip(around, logs, strict=True):
        geodesics(axes, torch.stack([z, y]), [[0], [1]], colors="#999999", linewidths=1)
        axes.annotate("", z + 0.55 * v, z, arrowprops={"arrowstyle": "->", "color": COLOURS[0], "lw": 1.2})
    axes.annotate("", z + total, z, arrowprops={"arrowstyle": "->", "color": COLOURS[3], "lw": 2.2})
    axes.scatter(*around.numpy().T, s=40, color="#777777", zorder=3)
    axes.scatter(*z, s=60, color="black", zorder=3)
    axes.scatter(*new, s=60, color=COLOURS[3], zorder=3)
    for (x, y), text in (
        (z.tolist(), "$z_i$"), (around[0].tolist(), "$z_j$"), (new.tolist(), r"$\exp_{z_i}(v_i)$"),
    ):  # fmt: skip
        axes.text(x + 0.03, y + 0.05, text, fontsize=11)
    save(figure, "step")


def conditioning():
    """A hub under row sums of one and under the printed weights, step by step."""
    leaves = 60
    graph = Graph.from_edges(
        torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)]), leaves + 1
    )
    generator = torch.Generator().manual_seed(0)
    z = BALL.expmap0(0.15 * torch.randn(leaves + 1, 2, generator=generator, dtype=torch.float64))
    figure, axes = plt.subplots(figsize=(5.6, 3.4))
    for k, (name, words) in enumerate((("isotropic", "rows sum to one"), ("isotropic-printed", "as printed"))):
        flowing = GraphFlow(BALL, make_diffusivity(name, 2), eta=None).double()
        bound, state, apart = flowing.bind(z, graph), z, []
        for time in range(13):
            apart.append(float(BALL.dist(state[:1].expand_as(state[1:]), state[1:]).mean()))
            with torch.no_grad():
                state = bound(torch.tensor(float(time), dtype=torch.float64), state)
        axes.semilogy(range(13), apart, marker="o", markersize=3, color=COLOURS[3 * k], label=f"{name}: {words}")
    axes.set(xlabel="steps of $\\tau$ = 1", ylabel="mean distance hub to leaves")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    save(figure, "conditioning")


def orders():
    """Error against the step on the disk, measured."""

    def field(t, x):
        turned = torch.stack([-x[..., 1], x[..., 0]], -1)
        return (1 + 0.5 * torch.sin(3 * t)) * turned - 0.3 * x

    x0 = torch.tensor([[0.3, 0.1], [-0.2, 0.5]], dtype=torch.float64)
    exact = odeint(field, x0, [0.0, 2.0], manifold=BALL, method="dopri5", rtol=1e-12, atol=1e-13).final
    counts = [8, 16, 32, 64, 128]
    figure, axes = plt.subplots(figsize=(5.6, 3.8))
    for k, name in enumerate(("heuler", "hrk4", "ham", "heun", "rk4")):
        errors = [
            float(BALL.dist(odeint(field, x0, [0.0, 2.0], manifold=BALL, method=name, step=2 / n).final, exact).max())
            for n in counts
        ]
        axes.loglog([2 / n for n in counts], errors, marker="o", markersize=3, color=COLOURS[k], label=name)
    axes.set(xlabel="step", ylabel="distance to the answer")
    axes.set_xticks([2 / n for n in counts], [f"1/{n // 2}" for n in counts], minor=False)
    axes.minorticks_off()
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    save(figure, "orders")


PICTURES = {made.__name__: made for made in (ball, flow, step, conditioning, orders)}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for wanted in sys.argv[1:] or PICTURES:
        PICTURES[wanted]()
