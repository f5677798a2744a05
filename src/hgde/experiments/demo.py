"""The main job, small: HGDE, a GCN and an MLP on a simulated epidemic, same split, same trainer."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from hgde.data.sets.disease_sim import simulate_disease
from hgde.models import HGDE, NodeModel
from hgde.models.baselines import GCN, MLP
from hgde.report.disk import draw_disk
from hgde.settings import Settings
from hgde.training.prepare import make_task
from hgde.training.run import BuildModel, Reporter, build_hgde, train

# One thread: a thousand nodes are too few to share between two.
SETTINGS = Settings(
    width=16, time=4.0, eta=(1.0, 0.4, 0.1), diffusivity="attention", dropout=0.2, weight_decay=5e-3, threads=1
)


@dataclass
class Row:
    model: str
    sees_graph: bool
    accuracy: float
    f1: float
    epoch_ms: float
    seconds: float


@dataclass
class DemoResult:
    rows: list[Row]
    curvature: float
    pulled_back: int
    picture: str


def _build_mlp(settings: Settings, in_features: int, num_classes: int | None) -> NodeModel:
    return MLP(in_features, settings.width, num_classes or 2, dropout=0.2)


def _build_gcn(settings: Settings, in_features: int, num_classes: int | None) -> NodeModel:
    return GCN(in_features, settings.width, num_classes or 2, dropout=0.2)


def run_demo(folder: Path, seed: int, reporter: Callable[[str], AbstractContextManager[Reporter]]) -> DemoResult:
    """Train the three models, keep a table and a picture in ``folder``."""
    dataset = simulate_disease(seed)
    settings = SETTINGS.replace(seed=seed, split=seed)
    task = make_task(dataset, settings)
    kept: list[NodeModel] = []

    def build_and_keep(settings: Settings, in_features: int, num_classes: int | None) -> NodeModel:
        kept.append(build_hgde(settings, in_features, num_classes))
        return kept[-1]

    builders: dict[str, tuple[BuildModel, bool]] = {
        "MLP": (_build_mlp, False),
        "GCN": (_build_gcn, True),
        "HGDE": (build_and_keep, True),
    }
    rows = []
    for name, (build, sees_graph) in builders.items():
        with reporter(f"{name} ") as bar:
            outcome = train(settings, dataset=dataset, task=task, build=build, reporter=bar).outcomes[0]
        scores = outcome.test["accuracy"], outcome.test["f1"]
        rows.append(Row(name, sees_graph, *scores, outcome.epoch_ms, outcome.seconds))
    model = kept[0]
    assert isinstance(model, HGDE)
    with torch.no_grad():
        z = model.embed(task.features, task.graph)
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "embedding.png"
    draw_disk(
        picture,
        z,
        model.curvatures()["diffusion"],
        dataset.graph,
        dataset.labels,
        dataset.class_names,
        title=f"A simulated epidemic, embedded by HGDE (test accuracy {100 * rows[-1].accuracy:.1f} %)",
        root=0,
    )
    result = DemoResult(rows, model.curvatures()["diffusion"], outcome.pulled_back, str(picture))
    (folder / "result.json").write_text(json.dumps(asdict(result), indent=2) + "\n", encoding="utf-8")
    return result
