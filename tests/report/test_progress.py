"""Progress in a terminal and without one; training followed by several reporters; pages of comparisons and searches."""

import builtins
import io

import pytest
from rich.console import Console
from rich.text import Text

from hgde import pipeline, progress
from hgde.pipeline.progress import TrainingBar
from hgde.report.callbacks import MLflowReporter, Reporters, TensorBoardReporter
from hgde.report.from_comparison import report_of_comparison
from hgde.report.from_tuning import report_of_tuning
from hgde.report.page import render_html

TINY = {
    "preset": "none",
    "data": {"name": "disease-sim", "options": ["num_nodes=60"]},
    "model": {"width": 2, "time": 1.0},
    "training": {"epochs": 3},
    "run": {"threads": 1},
}


def console(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=80, highlight=False)


def test_plain_lines_without_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    shown = console(False)
    with progress.bar("squares", 2, console=shown) as advance:
        advance()
        advance()
    assert shown.file.getvalue().splitlines() == ["squares: 1 of 2", "squares: 2 of 2"]
    shown = console(False)
    with progress.transfers(console=shown) as arrived:
        arrived("a.zip", 1_000_000, 2_000_000)
    assert shown.file.getvalue() == "a.zip: 1.0 MB of 2.0 MB\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_says_nothing(monkeypatch, terminal):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    shown = console(terminal)
    with progress.bar("squares", 2, quiet=True, console=shown) as advance:
        advance(2)
    with (
        progress.working("thinking", quiet=True, console=shown),
        progress.transfers(quiet=True, console=shown) as arrived,
    ):
        arrived("a", 1, 0)
    assert shown.file.getvalue() == ""


def test_a_bar_in_a_terminal_shows_the_count():
    shown = console(True)
    with progress.bar("squares", 2, console=shown) as advance:
        advance(2)
    assert "squares" in shown.file.getvalue()
    assert "2/2" in shown.file.getvalue()


def test_training_says_epochs_in_lines_and_others_hear_of_them(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    heard = []

    class Ear(pipeline.Reporter):
        def epoch_done(self, epoch):
            heard.append(epoch.number)

        def seed_done(self, outcome):
            heard.append(outcome.seed)

    shown = console(False)
    with TrainingBar(shown) as bar:
        pipeline.fit(pipeline.make_settings(TINY), reporter=Reporters(bar, Ear()))
    assert heard == [1, 2, 3, 0]
    lines = shown.file.getvalue().splitlines()
    assert lines[0].startswith("seed 0: epoch 1 of 3")
    assert lines[-1].startswith("seed 0: test accuracy")


@pytest.mark.parametrize(("reporter", "package"), [(TensorBoardReporter, "tensorboard"), (MLflowReporter, "mlflow")])
def test_words_where_a_package_is_missing(monkeypatch, tmp_path, reporter, package):
    whole = builtins.__import__

    def without(name, *rest, **more):
        if package in name:
            raise ImportError(name)
        return whole(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"hgde\[tracking\]"):
        reporter(str(tmp_path))


def test_tensorboard_gets_every_epoch(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    pipeline.fit(pipeline.make_settings(TINY), reporter=TensorBoardReporter(tmp_path))
    assert list((tmp_path / "seed-0").glob("events*"))


def test_a_comparison_says_what_failed():
    scores = [{"split": 0, "seed": k, "score": 80.0 + k} for k in range(3)]
    best = {"system": "hgde", "metric": "accuracy", "scores": scores, "expected": 3, "parameters": 7, "seconds": 1.0}
    against = {"difference": -2.0, "error": 0.5, "count": 3, "p": 0.05}
    other = best | {"system": "gcn", "expected": 5, "against_best": against, "seconds": None}
    broken = {"system": "<b>", "metric": "accuracy", "scores": [], "expected": 3, "failures": ["out of memory"]}
    record = {
        "facts": {"data": "tree"},
        "rows": [best, other, broken],
        "advice": "Take hgde.",
        "trials": 8,
        "seconds": 9.0,
    }
    report = report_of_comparison(record)
    assert [system.name for system in report.systems] == ["hgde", "gcn"]
    assert report.systems[1].difference == (-2.0, pytest.approx(0.5 * 4.3027, rel=1e-3))
    assert report.warnings == ["gcn: 3 of 5 runs were finished.", "<b> failed: out of memory"]
    page = render_html(report)
    assert "Take hgde." in page
    assert "<b>" not in page


def test_a_search_says_what_to_take():
    trials = [
        {"number": 0, "changes": {}, "score": 0.8, "seconds": 1.0},
        {"number": 1, "changes": {"model.width": 8}, "score": 0.85, "seconds": 1.0},
        {"number": 2, "changes": {"model.width": 99}, "score": None, "seconds": 1.0, "failure": "diverged"},
    ]
    report = report_of_tuning({"metric": "accuracy", "trials": trials, "best": 1, "importances": {"model.width": 1.0}})
    assert report.best == {"model.width": 8}
    assert "Trial 1 is ahead of the start by 0.0500" in report.advice
    assert report.warnings == ["Trial 2 failed: diverged"]
    assert "keep the settings" in report_of_tuning({"trials": trials[:1], "best": 0}).advice
    assert "model.width" in render_html(report)


def test_stages_say_how_long_it_will_take(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    shown = console(False)
    with progress.Stages(console=shown) as stages:
        stages.say("two stages")
        advance = stages.stage("trials", 3)
        advance("gcn/trial-00")
        advance("gcn/trial-01", failure="out of memory")
        stages.stage("runs", None, seconds=600.0)("gcn/seed-0")
    lines = shown.file.getvalue().splitlines()
    assert lines[0] == "two stages"
    assert lines[1].startswith("trials: 1 of 3, about ")
    assert "gcn/trial-01: out of memory" in lines
    assert lines[-1].startswith("runs: 1, about ")


def test_stages_draw_a_bar_in_a_terminal_and_nothing_when_quiet():
    shown = console(True)
    with progress.Stages(console=shown) as stages:
        advance = stages.stage("trials", 3)
        advance("a-very-long-name-of-a-system/split-00/seed-00")
        stages.stage("runs", 2)("x")
    text = shown.file.getvalue()
    assert "trials" in text
    assert "runs" in text
    assert max(len(line) for line in Text.from_ansi(text).plain.splitlines()) <= 80
    shown = console(True)
    with progress.Stages(console=shown, quiet=True) as stages:
        stages.say("nothing")
        stages.stage("runs", 2)("x", failure="died")
    assert shown.file.getvalue() == ""
