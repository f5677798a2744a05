"""Searches: in rounds, the same after an interruption, on validation alone, with a file of settings at the end."""

import json
import sys
from dataclasses import replace

import pytest
from experiment_graphs import write_blocks

from hgde.experiments import search as searching
from hgde.experiments.search import ROUND_AROUND, Search, Searcher, SearchError, resolved, search_all
from hgde.experiments.space import Dimension, SpaceError, exists, lookup, read_space, space_for
from hgde.experiments.store import Store
from hgde.experiments.toml import to_toml
from hgde.experiments.tune import tune
from hgde.experiments.work import CHECKPOINTS
from hgde.models.base import MODELS
from hgde.pipeline.settings import make_settings, read_settings
from hgde.sections import SettingsError, nested, overlay

SHORT = {"training": {"epochs": 12}, "run": {"threads": 1}}


@pytest.mark.parametrize("model", MODELS.names())
def test_every_model_has_a_space_whose_values_it_takes(model):
    space = space_for(model)
    for dimension in space:
        for value in dimension.values or (dimension.low, dimension.high):
            chosen = nested({"model.name": model, **{k: _first(v) for k, v in dimension.when.items()}})
            if exists(make_settings(chosen).to_dict(), dimension.path):
                made = make_settings(overlay(chosen, nested({dimension.path: value}))).to_dict()
                assert lookup(made, dimension.path) == value, dimension.path


def _first(value):
    return value[0] if isinstance(value, list) else value


def search(given, trials, **changes):
    base = overlay(overlay(given, SHORT), {"model": {"name": "gcn"}})
    return Search("cell", base, space_for("gcn"), trials, **changes)


def test_the_first_trial_is_the_start(tmp_path):
    given = write_blocks(tmp_path / "graph")
    found = search_all([search(given, 6)], Store(tmp_path / "one"), 0)["cell"]
    assert found.trials[0].changes == {}
    assert len({json.dumps(trial.changes, sort_keys=True) for trial in found.trials}) > 3


def test_a_search_stopped_half_way_ends_the_same(tmp_path):
    given = write_blocks(tmp_path / "graph")
    whole = search_all([search(given, 6)], Store(tmp_path / "one"), 0)["cell"]

    class Stopped(Exception):
        pass

    def stop(done, *_):
        if done.job.key == "trial-002":
            raise Stopped

    with pytest.raises(Stopped):
        search_all([search(given, 6)], Store(tmp_path / "two"), 0, stop)
    assert sorted(Store(tmp_path / "two").content("cell")["records"]) == ["trial-000", "trial-001", "trial-002"]
    again = search_all([search(given, 6)], Store(tmp_path / "two"), 0)["cell"]
    assert [trial.changes for trial in again.trials] == [trial.changes for trial in whole.trials]
    assert [trial.score for trial in again.trials] == [trial.score for trial in whole.trials]
    assert again.settings == whole.settings


def elsewhere(monkeypatch):
    """A processor on which optuna comes to other proposals."""
    made = searching._make_study
    monkeypatch.setattr(searching, "_make_study", lambda search: made(replace(search, seed=search.seed + 1)))


@pytest.mark.parametrize("at_once", [None, 2])
def test_a_search_goes_on_where_other_trials_would_be_proposed(tmp_path, monkeypatch, at_once):
    given = write_blocks(tmp_path / "graph")
    store = Store(tmp_path / "runs")
    first = search_all([search(given, 5, at_once=at_once)], store, 0)["cell"]
    elsewhere(monkeypatch)
    other = search_all([search(given, 5, at_once=at_once)], Store(tmp_path / "others"), 0)["cell"]
    assert [trial.changes for trial in other.trials] != [trial.changes for trial in first.trials]
    run = []
    again = search_all(
        [search(given, 7, at_once=at_once)], Store(tmp_path / "runs"), 0, lambda done, *_: run.append(done.job.key)
    )
    assert run == ["trial-005", "trial-006"]
    kept = [(trial.changes, trial.score) for trial in first.trials]
    assert [(trial.changes, trial.score) for trial in again["cell"].trials[:5]] == kept


@pytest.mark.parametrize(
    "changes", [{"training.lr": 7.0}, {"training.lr": "fast"}, {"model.width": 17}, {"model.unheard": 1}]
)
def test_what_a_search_cannot_have_proposed_is_not_followed(tmp_path, changes):
    given = write_blocks(tmp_path / "graph")
    whole = search_all([search(given, 3)], Store(tmp_path / "runs"), 0)["cell"]
    path = Store(tmp_path / "runs").path("cell")
    content = json.loads(path.read_text())
    content["records"]["trial-002"]["more"]["changes"] = changes
    path.write_text(json.dumps(content))
    again = search_all([search(given, 3)], Store(tmp_path / "runs"), 0)["cell"]
    assert [trial.changes for trial in again.trials] == [trial.changes for trial in whole.trials]


def test_trials_hold_no_test_score(tmp_path):
    given = write_blocks(tmp_path / "graph")
    store = Store(tmp_path / "runs")
    search_all([search(given, 2)], store, 0)
    for _, record in store.records("cell"):
        assert "test" not in json.dumps(record["result"])


def test_trials_behind_the_median_are_given_up():
    searcher = Searcher(Search("cell", {"model": {"name": "gcn"}}, space_for("gcn"), 12))
    from hgde.experiments.jobs import Done

    for _ in range(2):
        jobs = searcher.next_jobs()
        results = [
            {
                "score": 0.5,
                "stopped": None,
                "pruned": False,
                "epoch_ms": 1.0,
                "epochs": [100],
                "reached": {str(CHECKPOINTS[0]): 0.1 * k},
            }
            for k in range(len(jobs))
        ]
        searcher.tell([Done(job, result) for job, result in zip(jobs, results, strict=True)])
    bars = [job.more["bars"][str(CHECKPOINTS[0])] for job in searcher.next_jobs()]
    assert bars == [pytest.approx(0.1)] * 4


def test_failed_trials_are_bad_trials_not_the_end(tmp_path):
    given = write_blocks(tmp_path / "graph")
    wild = Search(
        "cell",
        overlay(overlay(given, SHORT), {"model": {"name": "gcn"}}),
        (Dimension("model.width", (16, -3)),),
        5,
    )
    found = search_all([wild], Store(tmp_path / "runs"), 0)["cell"]
    assert any(trial.failure and "width" in trial.failure for trial in found.trials)
    assert found.best is not None
    assert found.best.failure is None


def test_without_optuna_there_are_words(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(SearchError, match=r"pip install 'hgde\[search\]'"):
        Searcher(Search("cell", {"model": {"name": "gcn"}}, space_for("gcn"), 2))
    Searcher(Search("cell", {"model": {"name": "gcn"}}, space_for("gcn"), 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["model.width"]\nvalues = []', "has no values"),
        ('["model.width"]\nlow = 3', "needs low < high"),
        ('["model.width"]\nlow = 0\nhigh = 1\nlog = true', "both above 0"),
        ('["model.width"]\nvalue = [1]', "has no 'value'"),
        ("width = 3", "must be a table"),
    ],
)
def test_spaces_that_cannot_be_used_are_refused_with_words(tmp_path, text, words):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(SpaceError, match=words):
        read_space(path)


def test_tune_writes_settings_that_train_takes(tmp_path):
    given = overlay(write_blocks(tmp_path / "graph"), overlay(SHORT, {"model": {"name": "gcn", "width": 8}}))
    tuned = tune(given, tmp_path / "tuned", trials=5, folds=1, workers=0)
    chosen = read_settings(tmp_path / "tuned" / "settings.toml")
    assert chosen["model"]["width"] == 8, "what was given is not searched"
    assert make_settings(chosen).model.name == "gcn"
    assert tuned.gain is not None
    assert tuned.gain >= 0
    assert "| trial |" in (tmp_path / "tuned" / "what-mattered.md").read_text()
    assert json.loads((tmp_path / "tuned" / "trials.json").read_text())["records"].keys() >= {"trial-000", "trial-004"}


def test_tune_refuses_a_space_of_another_model(tmp_path):
    given = overlay(write_blocks(tmp_path / "graph"), {"model": {"name": "gcn"}})
    (tmp_path / "space.toml").write_text('["model.eta"]\nvalues = [1]')
    with pytest.raises(SettingsError, match=r"model\.eta, which gcn does not have"):
        tune(given, tmp_path / "tuned", trials=2, workers=0, space=tmp_path / "space.toml")


def test_toml_is_read_back_as_it_was_written():
    import tomllib

    values = {"a": {"b": 1, "c": [1.0, 2.5], "d": True, "e": 'quo"te', "f": {"g": 1e-5}}, "h": "ö", "data": {"x y": 2}}
    assert tomllib.loads(to_toml(values, "two\nlines")) == values


def test_a_trial_is_no_longer_than_allowed_and_what_is_found_keeps_its_own_length(tmp_path):
    given = write_blocks(tmp_path / "graph")
    found = search_all([search(given, 2, length=(5, 5))], Store(tmp_path / "runs"), 0)["cell"]
    assert [trial.epochs for trial in found.trials] == [5, 5]
    assert found.settings["training"]["epochs"] == SHORT["training"]["epochs"]


@pytest.mark.parametrize("model", [name for name in MODELS.names() if name != "label-propagation"])
def test_every_model_can_be_tried_for_a_limited_time(tmp_path, model):
    given = overlay(write_blocks(tmp_path / "graph"), {"preset": "none", "run": {"threads": 1}})
    one = Search("cell", overlay(given, {"model": {"name": model}}), space_for(model), 2, length=(2, 2))
    found = search_all([one], Store(tmp_path / "runs"), 0)["cell"]
    assert [trial.failure for trial in found.trials] == [None, None]
    assert found.trials[0].settings != found.trials[1].settings


def test_a_preset_that_won_a_race_is_what_was_found(tmp_path):
    given = write_blocks(tmp_path / "graph")
    base = overlay(given, {"model": {"name": "hgde", "width": 4}, "training": {"epochs": 50}, "run": {"threads": 1}})
    race = overlay(given, {"preset": "auto", "model": {"name": "hgde"}, "training": {"epochs": 50, "lr": 0.03}})
    one = Search("cell", overlay(base, {"preset": "none"}), space_for("hgde"), 2, starts=(race,), length=(50, 50))
    found = search_all([one], Store(tmp_path / "runs"), 0)["cell"]
    raced = found.trials[1]
    assert raced.changes["preset"] in MODELS.get("hgde").presets
    assert raced.settings == overlay(race, raced.changes), "what the search started from is not laid under it"


def test_a_preset_that_won_a_race_is_not_tried_again_under_its_own_name(tmp_path):
    given = write_blocks(tmp_path / "graph")
    race = overlay(given, {"preset": "auto", "model": {"name": "hgde"}, "training": {"epochs": 50, "lr": 0.03}})
    base = overlay(given, {"preset": "none", "model": {"name": "hgde", "width": 4}, "training": {"epochs": 1}})
    space = (Dimension("model.width", (4, 64)), Dimension("training.lr", low=0.01, high=0.1))
    one = Search("cell", overlay(base, {"run": {"threads": 1}}), space, 9, starts=(race,), length=(50, 50), at_once=1)
    found = search_all([one], Store(tmp_path / "runs"), 0)["cell"]
    tried = [json.dumps(resolved(trial.settings), sort_keys=True) for trial in found.trials]
    assert len(set(tried)) == len(tried) == 9


def test_trials_may_change_a_few_settings_of_the_best_so_far(tmp_path):
    given = write_blocks(tmp_path / "graph")
    found = search_all([search(given, 7, at_once=2)], Store(tmp_path / "runs"), 0)["cell"]
    for number, trial in enumerate(found.trials[1:], 1):
        before = found.trials[: number - (number - 1) % ROUND_AROUND]
        best = max(before, key=lambda trial: (trial.score, -trial.number))
        paths = best.changes.keys() | trial.changes.keys()
        assert sum(best.changes.get(path) != trial.changes.get(path) for path in paths) <= 2, number
    again = search_all([search(given, 7, at_once=2)], Store(tmp_path / "runs"), 0)["cell"]
    assert [trial.changes for trial in again.trials] == [trial.changes for trial in found.trials]


def test_no_settings_are_tried_twice(tmp_path):
    given = write_blocks(tmp_path / "graph")
    space = (Dimension("model.width", (4, 8)), Dimension("model.dropout", (0.0, 0.5)))
    space += (Dimension("training.lr", low=0.001, high=0.1, log=True),)
    base = overlay(overlay(SHORT, given), {"preset": "none", "model": {"name": "gcn", "width": 4, "dropout": 0.0}})
    found = search_all([Search("cell", base, space, 8, at_once=1)], Store(tmp_path / "runs"), 0)["cell"]
    tried = {tuple(lookup(trial.settings, dimension.path) for dimension in space) for trial in found.trials}
    assert len(tried) == 8


def test_the_width_of_sgc_is_searched_for_links_alone():
    width = next(dimension for dimension in space_for("sgc") if dimension.path == "model.width")
    assert width.exists_in({"task": {"name": "links"}})
    assert not width.exists_in({"task": {"name": "nodes"}})
