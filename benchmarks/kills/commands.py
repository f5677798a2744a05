"""The commands that are killed. A new one is one entry: how it is started, how it goes on, what its result is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARYING = ("seconds", "epoch_ms", "peak_mib", "folder")
"""Fields that differ between two runs of the same: how long they took and where they are."""


@dataclass(frozen=True)
class Command:
    """``arguments(folder)`` starts it or goes on with what is there; ``result(folder)`` is what must come out."""

    arguments: Callable[[Path], list[str]]
    result: Callable[[Path], Any]


def graph_options(folder: Path) -> list[str]:
    """The graph of the template: records name their files, and must not differ by where a copy of them is."""
    place = folder.parent / "template"
    return ["--edges", str(place / "edges.csv"), "--nodes", str(place / "nodes.csv")]


def write_graph(folder: Path, num_nodes: int = 60) -> None:
    """A tree with two features and two classes."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = "".join(f"p{k},p{(k - 1) // 2}\n" for k in range(1, num_nodes))
    (folder / "edges.csv").write_text(f"source,target\n{edges}")
    rows = "".join(f"p{k},{('a', 'b')[k % 3 == 0]},{k % 7 / 7:.4f},{k % 5 / 5:.4f}\n" for k in range(num_nodes))
    (folder / "nodes.csv").write_text(f"id,label,x,y\n{rows}")


def _train(folder: Path) -> list[str]:
    if (folder / "run" / "settings.json").exists():
        return ["train", "--resume", str(folder / "run"), "--quiet"]
    quick = "--width 3 --time 2 --epochs 150 --patience 150 --checkpoint-every 7 --preset none --threads 1 --quiet"
    return ["train", *graph_options(folder), *quick.split(), "--out", str(folder / "run")]


def _tune(folder: Path) -> list[str]:
    quick = "--set model.name=gcn --trials 3 --folds 2 --workers 2 --epochs 20 --quiet"
    return ["tune", *graph_options(folder), *quick.split(), "--out", str(folder / "out")]


def _compare(folder: Path) -> list[str]:
    quick = "--models gcn,mlp,majority --trials 1 --splits 2 --seeds 1 --workers 2 --set training.epochs=20 --quiet"
    return ["compare", *graph_options(folder), *quick.split(), "--out", str(folder / "out")]


def _reproduce(folder: Path) -> list[str]:
    quick = "reproduce curvature --only disease-sim --only mlp --workers 2"
    return [*quick.split(), "--results", str(folder / "out")]


def _report(folder: Path) -> list[str]:
    return ["report", str(folder / "made"), "--out", str(folder / "out"), "--to-disk", "principal"]


def _partition(folder: Path) -> list[str]:
    if (folder / "parts" / "partition.json").exists():  # done: a partition that is there is never written over
        return ["--version"]
    return ["partition", *graph_options(folder), "--pieces", "4", "--out", str(folder / "parts")]


def parts(folder: Path) -> dict[str, str]:
    """Every file of a partition by its hash."""
    files = sorted(path for path in (folder / "parts").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def records(folder: Path) -> dict[str, Any]:
    """Every record of a folder of records, without what differs from run to run."""
    kept: dict[str, Any] = {}
    for path in sorted((folder / "out").rglob("*.json")):
        content = json.loads(path.read_text())
        if isinstance(content, dict) and "records" in content:
            kept[str(path.relative_to(folder))] = _steady(content["records"])
    return kept


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _steady(inner) for name, inner in value.items() if name not in VARYING}
    return [_steady(inner) for inner in value] if isinstance(value, list) else value


COMMANDS = {
    "train": Command(_train, lambda folder: (folder / "run" / "seed-0" / "model.safetensors").read_bytes()),
    "tune": Command(_tune, records),
    "compare": Command(_compare, records),
    "reproduce": Command(_reproduce, records),
    "partition": Command(_partition, parts),
    "report": Command(_report, lambda folder: _steady(json.loads((folder / "out" / "report.json").read_text()))),
}
