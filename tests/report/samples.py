"""A tree in the disk and reports about it, small, with names that try to break out of a page."""

import numpy as np
import torch

from hgde.geometry import ball
from hgde.report.contents import (
    ComparisonReport,
    DiskView,
    EnergyCurve,
    History,
    RunReport,
    Score,
    System,
    Trial,
    TuningReport,
    ValuePairs,
)
from hgde.report.measures import prediction_parts, top_weights

HOSTILE = [
    "</script><script>window.broken = true</script>",
    "\"quotes\" & 'more' <b>bold</b>",
    "x" * 10_000,
    "<!-- <script> -->",
    "line\nbreak\ttab \x00\x07 control",
    "$\\frac{1}{0$ |pipe| `tick` {{ 7 * 7 }}",
    "日本語 \u202e right to left \u2028",
]
CLASSES = ["root & <b>trunk</b>", "left", "$right", "x" * 300]


def tree_in_ball(depth, branches, width, step=1.4, seed=0):
    """Nodes ``[N, width]`` of a tree grown outwards in the unit ball, and their parents."""
    generator = torch.Generator().manual_seed(seed)
    points, parents, layer = [torch.zeros(width, dtype=torch.float64)], [-1], [0]
    for _ in range(depth):
        grown = []
        for node in layer:
            for _ in range(branches):
                x = points[node]
                way = torch.randn(width, generator=generator, dtype=torch.float64)
                way = way / way.norm() + (x / x.norm() if bool(x.norm() > 0) else 0.0)
                points.append(ball.expmap(x, step * way / way.norm() / ball.lambda_x(x, 1.0), 1.0))
                parents.append(node)
                grown.append(len(points) - 1)
        layer = grown
    return torch.stack(points), np.array(parents)


def tree_in_disk(depth=6, branches=3, spread=0.95, seed=0):
    """Positions ``[N, 2]`` of a tree drawn in wedges, its edges ``[2, N - 1]`` and the branch each node belongs to."""
    rng = np.random.default_rng(seed)
    places, edges, branch = [(0.0, 0.0)], [], [0]
    layer = [(0, 0.0, 2 * np.pi)]
    for level in range(1, depth + 1):
        grown = []
        for node, low, high in layer:
            cuts = np.linspace(low, high, branches + 1)
            for k in range(branches):
                angle = 0.5 * (cuts[k] + cuts[k + 1]) + 0.1 * rng.normal() * (cuts[k + 1] - cuts[k])
                radius = np.tanh(0.5 * spread * level * (1 + 0.05 * rng.normal()))
                places.append((radius * np.cos(angle), radius * np.sin(angle)))
                edges.append((node, len(places) - 1))
                branch.append(k + 1 if node == 0 else branch[node])
                grown.append((len(places) - 1, cuts[k], cuts[k + 1]))
        layer = grown
    return np.array(places), np.array(edges).T, np.array(branch)


def sample_view(depth=5, branches=3, seed=0):
    points, edges, labels = tree_in_disk(depth, branches, seed=seed)
    rng = np.random.default_rng(seed)
    count = len(points)
    shrunk = np.tanh(np.arctanh(np.linalg.norm(points, axis=1)) * 0.35)
    start = points * (shrunk / np.maximum(np.linalg.norm(points, axis=1), 1e-12))[:, None]
    turn = np.array([[np.cos(0.8), -np.sin(0.8)], [np.sin(0.8), np.cos(0.8)]])
    positions = np.stack([start @ turn.T, 0.5 * (start + points), points])
    predictions = np.where(rng.random(count) < 0.9, labels, rng.integers(0, 4, count))
    ids = [f"node-{i}" for i in range(count)]
    ids[1 : 1 + len(HOSTILE)] = HOSTILE
    both = np.concatenate([edges, edges[::-1]], axis=1)
    far = rng.integers(0, count, (2, 6 * count))
    return DiskView(
        positions=positions,
        times=[0.0, 1.0, 2.0],
        edges=edges,
        ids=ids,
        labels=labels,
        predictions=predictions,
        confidences=rng.beta(5, 2, count),
        degrees=np.bincount(edges.ravel(), minlength=count),
        class_names=CLASSES,
        local_weights=top_weights(both[0], both[1], rng.random(both.shape[1]), count, k=6),
        global_weights=top_weights(far[0], far[1], rng.random(far.shape[1]), count, k=6),
        method="two dimensions as trained, curvature -1",
        quality={"distortion": 0.12, "10-neighbour overlap": 0.83},
    )


def sample_run(view=None):
    view = sample_view() if view is None else view
    epochs = np.arange(1, 121)
    decay = np.exp(-epochs / 30)
    return RunReport(
        title='Simulated epidemic <i>with</i> "names"',
        summary="HGDE with two dimensions, three seeds, on a tree of 364 nodes.",
        settings={"width": 2, "learning_rate": 0.01, "solver": "hrk4", "eta": (1.0, 0.4, 0.1), "note": HOSTILE[0]},
        versions={"hgde": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        data={"nodes": len(view.labels), "edges": view.edges.shape[1], "classes": 4, "average degree": 1.99},
        parts={"train": 109, "validation": 36, "test": 219},
        scores=[
            Score("accuracy", [0.91, 0.89, 0.92], unit="%", baselines={"GCN": [0.85, 0.86, 0.84], "MLP": [0.5]}),
            Score("macro F1", [0.88, 0.87, 0.9], unit="%", baselines={"GCN": [0.8, 0.81, 0.79]}),
            Score("accuracy", [0.93, 0.92, 0.94], part="validation", unit="%"),
        ],
        history=History(
            epochs=epochs.tolist(),
            loss=(0.2 + 1.2 * decay).tolist(),
            validation_loss=(0.3 + 1.1 * decay + 0.002 * epochs).tolist(),
            score=(0.9 - 0.5 * decay).tolist(),
            score_name="validation accuracy",
            curvature={"encoder": (-1 - 0.3 * (1 - decay)).tolist(), "diffusion": (-0.7 - 0.2 * (1 - decay)).tolist()},
            projected_points=(5 * decay).astype(int).tolist(),
            best_epoch=80,
        ),
        values=ValuePairs({"age </b>": ([1.0, 2.0, 3.0, 4.0], [1.1, 1.8, 3.3, 3.9])}),
        choice=["epoch 25: sparse 80.1, deep 79.0", f"chosen: {HOSTILE[0]}"],
        energy=EnergyCurve([0.0, 0.5, 1.0, 1.5, 2.0], {"this run": [3.0, 1.4, 0.8, 0.5, 0.4]}),
        disk=view,
        warnings=["12 points were projected back into the ball in the first epochs.", HOSTILE[1]],
        reproduce=["hgde train epidemic --seed 0", "hgde report runs/epidemic"],
        **prediction_parts(
            view.labels, view.predictions, view.confidences, class_names=CLASSES, ids=view.ids, edges=view.edges
        ),
    )


def sample_comparison():
    return ComparisonReport(
        title="Four systems on </script> a tree",
        systems=[
            System("HGDE", [91.0, 89.0, 92.0], parameters=12_345, seconds=8.2),
            System("flat twin", [88.0, 87.5, 90.0], (-2.2, 0.8), 12_343, 6.9),
            System(HOSTILE[0], [85.0, 86.0, 84.0], (-5.7, 1.1), 4_321, 1.3),
        ],
        score_name="accuracy (%)",
        advice="HGDE is ahead of its flat twin by 2.2 points; the graph is tree-like, so use it.",
        data={"nodes": 364},
        versions={"hgde": "0.1.0"},
        reproduce=["hgde compare epidemic"],
    )


def sample_tuning():
    rng = np.random.default_rng(1)
    trials = [
        Trial(k, {"width": int(rng.integers(2, 64)), "rate": float(rng.random())}, float(rng.random()), 3.0)
        for k in range(20)
    ]
    return TuningReport(
        title="Tuning of HGDE",
        trials=[*trials, Trial(20, {"width": 9, "name": HOSTILE[0]}, None, None, "failed")],
        importances={"width": 0.7, "rate": 0.3},
        best={"width": 32, "rate": 0.01},
        advice="A width of 32 is enough.",
        reproduce=["hgde tune epidemic --trials 20"],
    )


REPORTS = {"run": sample_run, "comparison": sample_comparison, "tuning": sample_tuning}
