"""The report of a run folder: everything it says is read from the folder or worked out again from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from hgde.diffusion.stability import stability
from hgde.models import HGDE
from hgde.pipeline import Fitted, RunError, RunFolder, load, versions
from hgde.pipeline.fitted import node_ids
from hgde.pipeline.folder_checks import own_files
from hgde.pipeline.presets import Choice, Rung
from hgde.report.callbacks import flat
from hgde.report.command import command_of
from hgde.report.contents import DiskView, EnergyCurve, History, RunReport, Score
from hgde.report.embedding import disk_view, energy_curve, states_over_time
from hgde.report.page import format_score
from hgde.report.predictions import parts_of
from hgde.tasks import Problem
from hgde.tasks.baselines import baseline_scores

PLAIN = ("rmse", "mae", "r2", "log_loss", "loss")
"""Scores that are no shares and are shown as they are."""
_WORDS = {
    "nodes": "classes of nodes",
    "links": "links",
    "regression": "values of nodes",
    "multilabel": "labels of nodes",
}
_FEW_HELD_OUT = 30


def report_of_run(
    folder: str | Path, *, seed: int | None = None, method: str | None = None, baselines: bool = True
) -> RunReport:
    """The :class:`RunReport` of a run folder.

    Args:
        seed: whose model is looked at closely; the first finished one by default. Scores are those of all seeds.
        method: how to reach the disk, see :func:`hgde.report.embedding.disk_view`.
        baselines: also score what costs nothing (majority, label propagation, ...) on the same split.

    >>> import tempfile
    >>> from hgde import fit, make_settings
    >>> data = {"name": "tree-random", "options": ["num_nodes=40"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fit(make_settings({"data": data, "training": {"epochs": 1}, "preset": "none"}), f"{folder}/run")
    ...     report_of_run(f"{folder}/run", baselines=False).summary
    'hgde, one seed: accuracy ... % on 8 test nodes.'
    """
    run = RunFolder(Path(folder))
    with own_files(run):
        return _report(run, seed, method, baselines)


def _report(run: RunFolder, seed: int | None, method: str | None, baselines: bool) -> RunReport:
    fitted = load(run.path, seed)
    data = fitted.training_data()
    results = [_result(run, number) for number in run.finished_seeds()]
    chosen = next(r for r in results if seed is None or r["seed"] == seed)
    ids = [str(name) for name in node_ids(data.dataset)]
    parts, nodes = parts_of(fitted, ids)
    times, states = states_over_time(fitted)
    energy = energy_curve(fitted, times, states)
    free = _baselines(fitted) if baselines else {}
    scores = _scores(results, free)
    facts = run.facts()
    return RunReport(
        title=f"{data.dataset.name}: {_WORDS.get(fitted.settings.task.name, fitted.settings.task.name)}",
        summary=_summary(fitted, scores, results, data.problem),
        settings=flat(fitted.settings.to_dict()),
        versions=facts.get("versions") or {},
        data=_data_facts(fitted, facts),
        parts={name: part.size for name, part in data.problem.parts.items()},
        scores=scores,
        history=_history(chosen, fitted),
        energy=energy,
        disk=disk_view(fitted, times, states, method=method, ids=ids, **nodes),
        choice=_choice(run),
        warnings=_warnings(run, fitted, results, scores, states),
        reproduce=_reproduce(run, fitted, facts),
        **parts,
    )


def explorer_of_run(
    folder: str | Path, *, seed: int | None = None, method: str | None = None
) -> tuple[str, DiskView, EnergyCurve | None]:
    """Title, disk and energy of a run, for the explorer alone (page or notebook).

    >>> import tempfile
    >>> from hgde import fit, make_settings
    >>> data = {"name": "tree-random", "options": ["num_nodes=40"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fit(make_settings({"data": data, "training": {"epochs": 1}, "preset": "none"}), f"{folder}/run")
    ...     title, view, energy = explorer_of_run(f"{folder}/run")
    >>> title, view.positions.shape[1]
    ('tree-random', 40)
    """
    fitted = load(folder, seed)
    dataset = fitted.training_data().dataset
    ids = [str(name) for name in node_ids(dataset)]
    times, states = states_over_time(fitted)
    view = disk_view(fitted, times, states, method=method, ids=ids, **parts_of(fitted, ids)[1])
    return dataset.name, view, energy_curve(fitted, times, states)


def _result(run: RunFolder, seed: int) -> dict[str, Any]:
    result = run.read(f"seed-{seed}/result.json")
    expected = {"seed": int, "test": dict, "validation": dict, "history": list, "best_epoch": int, "epochs": int}
    wrong = [name for name, kind in expected.items() if not isinstance(result.get(name), kind)]
    if wrong:
        raise RunError(
            f"{run.seed_folder(seed) / 'result.json'} is damaged: field {wrong[0]!r} is missing or no {wrong[0]}"
        )
    return result


def _baselines(fitted: Fitted) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Scores of what costs nothing, on the very split of the run; none where the split cannot be drawn again."""
    data, settings = fitted.training_data(), fitted.settings
    problem = data.problem
    if problem.extra is None:
        # A stored problem lacks what non-edges are drawn by; the same settings pose it again.
        try:
            again = settings.task.entry.pose(data.dataset, settings.task.options, settings.data)
        except ValueError:
            return {}
        if again.split_hash != problem.split_hash:
            return {}
        problem = again.with_features(problem.inputs)
    return baseline_scores(problem)


def _scores(results: Sequence[Mapping[str, Any]], free: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[Score]:
    """All scores of the test part, those of the validation part after them."""
    made = []
    for part, key in (("test", "test"), ("validation", "val")):
        for name in results[0][part]:
            values = [float(_number(result[part].get(name))) for result in results]
            log_losses = [_number(result[part].get("log_loss")) for result in results]
            if name == "loss" and np.allclose(values, log_losses, rtol=1e-3):
                continue  # without weights of classes the same number under another name
            if not np.isfinite(values).any():
                continue
            others = {baseline: [parts[key][name]] for baseline, parts in free.items() if name in parts[key]}
            made.append(Score(_spoken(name), values, part, "" if name in PLAIN else "%", others))
    return made


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _summary(fitted: Fitted, scores: Sequence[Score], results: Sequence[Any], problem: Problem) -> str:
    first = scores[0]
    count = f"{len(results)} seeds" if len(results) > 1 else "one seed"
    part = "validation" if first.part == "validation" else "test"
    items = "pairs" if fitted.task.outputs is None else "nodes"
    size = problem.parts["val" if part == "validation" else "test"].size
    text = (
        f"{fitted.settings.model.name}, {count}: {first.name} {format_score(first.values, first.unit)} on {size:,} "
        f"{part} {items}."
    )
    best = _best_baseline(fitted, first)
    if best is not None:
        text += f" The best baseline without training is {best[0]} with {format_score([best[1]], first.unit)}."
    return text


def _best_baseline(fitted: Fitted, score: Score) -> tuple[str, float] | None:
    gain = fitted.task.metric.gain
    known = {name: values[0] for name, values in score.baselines.items() if np.isfinite(values[0])}
    return max(known.items(), key=lambda item: gain(item[1])) if known else None


def _data_facts(fitted: Fitted, facts: Mapping[str, Any]) -> dict[str, Any]:
    data = fitted.training_data()
    graph = data.problem.graph
    named = {
        "name": data.dataset.name,
        "nodes": graph.num_nodes,
        "edges": int(graph.undirected_edges.shape[1]),
        "features": data.dataset.num_features,
        "inputs after preprocessing": int(data.problem.inputs.shape[1]),
        "classes": (data.dataset.num_classes or None) if fitted.task.kind in ("classes", "pairs") else None,
        "split": facts.get("split"),
        "split hash": str(facts.get("split_hash"))[:16],
        "data hash": str(facts.get("data_hash"))[:16],
    }
    return {name: value for name, value in named.items() if value is not None}


def _history(result: Mapping[str, Any], fitted: Fitted) -> History | None:
    rows = [row for row in result["history"] if isinstance(row, Mapping) and "epoch" in row]
    if not rows:
        return None

    def series(name: str) -> list[float] | None:
        values = [_number(row.get(name)) for row in rows]
        return values if np.isfinite(values).any() else None

    curvature = series("curvature")
    return History(
        epochs=[int(row["epoch"]) for row in rows],
        loss=series("loss"),
        validation_loss=series("validation_loss"),
        score=series("score"),
        score_name=f"validation {_spoken(fitted.task.metric.name)}",
        curvature={} if curvature is None or not fitted.learner.model.curvatures() else {"c": curvature},
        projected_points=series("projected"),
        best_epoch=result["best_epoch"],
    )


def _choice(run: RunFolder) -> list[str]:
    if not (run.path / "choice.json").exists():
        return []
    stored = run.read("choice.json")
    try:
        return Choice(stored["chosen"], [Rung(**rung) for rung in stored["rungs"]], stored.get("reason", "")).lines()
    except (KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{run.path / 'choice.json'} is damaged: {error}") from None


def _warnings(
    run: RunFolder, fitted: Fitted, results: Sequence[Mapping[str, Any]], scores: Sequence[Score], states: Tensor
) -> list[str]:
    words = []
    problem = fitted.training_data().problem
    best = _best_baseline(fitted, scores[0])
    gain = fitted.task.metric.gain
    if best is not None and gain(best[1]) >= gain(scores[0].mean):
        words.append(
            f"{best[0]}, which needs no training, is as good or better on this split: use it, or tune this model."
        )
    for name, part in (("validation", "val"), ("test", "test")):
        size = problem.parts[part].size
        if 0 < size < _FEW_HELD_OUT:
            words.append(f"The {name} part has only {size} items; its scores are imprecise.")
    cut = [result for result in results if result["best_epoch"] == result["epochs"] == fitted.settings.training.epochs]
    if cut:
        words.append(
            "The last epoch was the best one: more epochs may do better (`hgde train --resume RUN --epochs N`)."
        )
    projected = sum(int(_number(result.get("projected", 0)) or 0) for result in results)
    if projected:
        words.append(f"{projected:,} points left the ball while training and were projected back.")
    unfinished = set(run.seeds()) - set(run.finished_seeds())
    if unfinished:
        words.append(f"Seeds without a finished model: {', '.join(map(str, sorted(unfinished)))}.")
    model = fitted.learner.model
    if isinstance(model, HGDE):
        _, graph, _ = fitted.inputs()
        verdict = stability(model.block.flow.bind(states[0], graph), model.block.method, model.block.step)
        if not verdict.is_stable:
            words.append(f"{str(verdict)[0].upper()}{str(verdict)[1:]}.")
    before, now = run.facts().get("versions") or {}, versions()
    changed = [
        f"{name} {before[name]} then, {now[name]} now" for name in before if now.get(name, before[name]) != before[name]
    ]
    if changed:
        words.append(f"This report was made with other versions than the run: {'; '.join(changed)}.")
    spec = fitted.training_data().dataset.spec
    if spec is not None and spec.notes:
        words.append(f"Known issues of this data set: {spec.notes}")
    return words


def _reproduce(run: RunFolder, fitted: Fitted, facts: Mapping[str, Any]) -> list[str]:
    lines = []
    if not facts.get("data_named_by_settings", True):
        lines.append(
            f"# The data was handed over in memory; the run keeps a copy of it in {run.path.name}/data.safetensors."
        )
    lines.append(command_of("train", fitted.settings))
    lines.append(f"hgde report {run.path.name}")
    return lines
