"""The work of ``hgde embed``: points in the asked coordinates, pictures, and files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from hgde.data import Dataset
from hgde.geometry import Lorentz, PoincareBall
from hgde.geometry.models import MODELS, to_model
from hgde.pipeline import Fitted, RunError, write_table
from hgde.pipeline.fitted import node_ids
from hgde.report.contents import DiskView
from hgde.report.embedding import ball_points
from hgde.report.export import write_gexf, write_graphml, write_projector
from hgde.report.projection import DiskProjection, project_to_disk

GRAPHS = {".graphml": write_graphml, ".gexf": write_gexf}


def embed_run(
    fitted: Fitted,
    dataset: Dataset | None,
    out: Path | None,
    to: str | None,
    to_disk: str | None,
    export: Path | None,
    plot: Path | None,
    about: dict[str, Any],
) -> list[str]:
    """Write what was asked for; a line of words for each file."""
    if to is not None and to not in MODELS:
        raise RunError(f"--to must be one of {', '.join(MODELS)}, got {to!r}")
    if to is not None and to_disk is not None:
        raise RunError("--to names a model for all dimensions, --to-disk two coordinates of the disk; give one of them")
    if out is not None and out.suffix in GRAPHS:
        if export is not None:
            raise RunError("--out and --export name two files for other programs; give a table with --out")
        out, export = None, out
    known = dataset or fitted.training_data().dataset
    points = fitted.embed(dataset).cpu()
    model = fitted.learner.model
    space, name = model.manifold, type(model.manifold).__name__
    lines: list[str] = []
    disk: DiskProjection | None = None
    if to_disk is not None or export is not None:
        inside, c, words = ball_points(points, space)
        disk = project_to_disk(inside, c, to_disk or "principal")
        shown = ", ".join(f"{what} {value:.3f}" for what, value in disk.quality.as_dict().items())
        lines.append(
            f"{inside.shape[1]} dimensions to the disk by {disk.method}: {shown}" + (f" ({words})" if words else "")
        )
    if out is not None or export is None:
        coordinates = points
        if to is not None:
            coordinates, name = _in_model(points, space, to), to
        elif disk is not None:
            coordinates, name = disk.points, f"disk by {disk.method}"
        out = out or Path("embedding.npz")
        table = {"id": node_ids(known)} | {f"z{k}": coordinates[:, k].numpy() for k in range(coordinates.shape[1])}
        quality = {} if disk is None else {"quality": disk.quality.as_dict()}
        write_table(out, table, about | {"space": name, "curvatures": model.curvatures()} | quality)
        lines.append(f"wrote {len(coordinates)} points of {coordinates.shape[1]} coordinates ({name}) to {out}")
    if export is not None:
        assert disk is not None
        lines.append(_export(export, fitted, known, dataset, points, disk))
    if plot is not None:
        from hgde.report.disk import draw_disk

        inside, c, _ = ball_points(points, space)
        draw_disk(plot, inside, c, known.graph, known.labels, known.class_names, title=known.name)
        lines.append(f"drew {plot}")
    return lines


def _in_model(points: Tensor, space: Any, to: str) -> Tensor:
    if not isinstance(space, PoincareBall | Lorentz):
        raise RunError(f"the embedding lies in {type(space).__name__}; only hyperbolic space has the model {to!r}")
    inside, c, _ = ball_points(points, space)
    return to_model(inside, c, to)


def _export(
    path: Path, fitted: Fitted, known: Dataset, other: Dataset | None, points: Tensor, disk: DiskProjection
) -> str:
    ids = [str(name) for name in node_ids(known)]
    facts: dict[str, Any] = {"ids": ids, "class_names": known.class_names or []}
    if known.labels is not None:
        facts["labels"] = known.labels.cpu().numpy()
    if fitted.task.kind == "classes":
        outputs, _ = fitted.outputs(other)
        facts["predictions"] = outputs.argmax(-1).cpu().numpy()
    if path.suffix in GRAPHS:
        inside = disk.points / disk.points.norm(dim=1, keepdim=True).clamp_min(1.0 - 1e-9) * (1.0 - 1e-9)
        kept = disk.points.norm(dim=1, keepdim=True) < 1.0 - 1e-9
        positions = disk.points.where(kept, inside).numpy()[None]
        GRAPHS[path.suffix](DiskView(positions, edges=known.graph.undirected_edges.cpu().numpy(), **facts), path)
        return f"wrote {len(ids)} nodes with disk coordinates to {path}"
    if path.suffix:
        raise RunError(f"{path}: expected {', '.join(GRAPHS)} or a folder for TensorBoard's projector")
    write_projector(path, fitted.learner.model.manifold.cpu().logmap0(points).detach().numpy(), **facts)
    return f"wrote {path} (open it: tensorboard --logdir {path})"
