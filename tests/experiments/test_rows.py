"""Rows of the published tables: every file parses, and a table runs, resumes and is told against what was published."""

import contextlib
import json

import pytest

from hgde.experiments.reproduce import (
    Job,
    expected_minutes,
    load_result,
    pending,
    reproduce,
    result_path,
    write_report,
)
from hgde.experiments.rows import TABLES, Row, RowError, read_row, read_rows
from hgde.experiments.search import STRATEGIES, propose_greedily, search
from hgde.report.searches import write_search_report
from hgde.report.tables import verdict
from hgde.settings import SettingsError

ROWS = read_rows()


def small_row(**changes):
    settings = {"data": "disease-sim", "width": 4, "time": 1.0, "epochs": 3, "dropout": 0.0}
    row = {
        "table": "nodes",
        "key": "small",
        "title": "Small",
        "note": "",
        "published": (50.0, 1.0),
        "vary": "seed",
        "runs": 2,
        "settings": settings,
        "columns": {"clean": {"protocol": "clean"}},
    }
    return Row(**{**row, **changes})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.table}-{row.key}")
def test_every_row_file_gives_settings_for_every_run(row):
    assert row.table in TABLES
    for column in row.columns:
        first, last = row.settings_of(column, 0), row.settings_of(column, row.runs - 1)
        varied = "split" if row.vary == "split" else "seed"
        assert getattr(last, varied) == row.runs - 1
        assert first.replace(seed=last.seed, split=last.split) == last


def test_paper_rows_cover_both_solvers_and_every_data_set():
    for table in ("nodes", "links"):
        methods = {row.settings["method"] for row in ROWS if row.table == table}
        assert methods == {"hrk4", "ham"}
    assert {row.key for row in ROWS if row.table == "hetero"} == {"texas", "wisconsin", "cornell"}
    assert {row.settings["time"] for row in ROWS if row.table == "depth"} == {4.0, 8.0, 12.0, 16.0}


def test_an_unknown_setting_in_a_row_names_the_file_and_the_nearest(tmp_path):
    path = tmp_path / "row.toml"
    path.write_text('title = "x"\n[settings]\nwidht = 3\n')
    with pytest.raises(RowError, match=r"row\.toml.*did you mean 'width'"):
        read_row(path, "nodes")


def test_a_table_runs_keeps_each_run_and_does_not_run_it_again(tmp_path, monkeypatch):
    row = small_row()
    monkeypatch.setattr("hgde.experiments.reproduce.RUNS_A_POOL", 1)
    told = []
    results = reproduce([row], tmp_path, workers=1, on_done=lambda job, outcome, n, total: told.append(job.run))
    assert sorted(told) == [0, 1]
    assert [run["seed"] for run in results[0].runs] == [0, 1]
    assert {"majority", "logistic regression", "decision tree"} <= set(results[0].baselines)
    assert results[0].runs[0]["split_hash"] == results[0].runs[1]["split_hash"]
    assert list(pending([row], tmp_path, None)) == []

    path = result_path(tmp_path, Job(row, "clean", 0))
    content = json.loads(path.read_text())
    seconds = sum(run["seconds"] for run in content["runs"])
    assert expected_minutes([Job(row, "clean", 0)] * 2, tmp_path, 2) == pytest.approx(seconds / 120)
    assert expected_minutes([Job(small_row(key="other"), "clean", 0)], tmp_path, 2) is None
    del content["settings"]["averaging"]  # as if the setting had been added since
    content["runs"] = content["runs"][:1]
    path.write_text(json.dumps(content))
    assert [job.run for job in pending([row], tmp_path, None)] == [1], "only the missing run is left"

    changed = small_row(settings={**row.settings, "width": 5})
    assert [job.run for job in pending([changed], tmp_path, None)] == [0, 1], "other settings, other results"

    write_report(tmp_path)
    page = (tmp_path / "README.md").read_text()
    assert "| Small | clean |" in page
    assert "50.0 ± 1.0" in page


def test_the_verdict_is_one_published_deviation_below_the_mean(tmp_path):
    row = small_row(runs=1)
    reproduce([row], tmp_path, workers=1)
    result = load_result(result_path(tmp_path, Job(row, "clean", 0)))
    result.published = (result.mean + 1.0, 1.5)
    assert verdict(result) == "yes"
    result.published = (result.mean + 1.0, 0.5)
    assert verdict(result).startswith("no")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_search_records_validation_scores_only_and_goes_on_where_it_was(tmp_path, strategy):
    space = {"width": [3, 4], "lr": [0.01, 0.02]}
    how = {"strategy": strategy, "seeds": 1, "space": space}
    best = search(small_row(), "clean", tmp_path, trials=2, **how)
    record = json.loads((tmp_path / "nodes-small--clean.json").read_text())
    assert len(record["trials"]) == 2
    assert "test" not in json.dumps(record["trials"])
    assert record["trials"][0]["settings"] == {"width": 4, "lr": 0.01}, "the first trial is the row itself"
    search(small_row(), "clean", tmp_path, trials=3, **how)
    longer = json.loads((tmp_path / "nodes-small--clean.json").read_text())
    assert longer["trials"][:2] == record["trials"]
    assert set(best) == set(space)


def test_a_greedy_search_keeps_what_helped_and_ends():
    def score(settings):
        return -abs(settings["a"] - 3) + (10 if settings["b"] == "y" else 0)

    proposals = propose_greedily({"a": 1, "b": "x"}, {"a": [1, 2, 3, 4], "b": ["x", "y"]})
    tried = [next(proposals)]
    with contextlib.suppress(StopIteration):
        while len(tried) < 20:
            tried.append(proposals.send(score(tried[-1])))
    assert [tuple(t.values()) for t in tried] == [(1, "x"), (2, "x"), (3, "x"), (4, "x"), (3, "y")]


def test_an_unknown_setting_in_the_space_names_the_nearest(tmp_path):
    with pytest.raises(SettingsError, match="did you mean 'lr'"):
        search(small_row(), "clean", tmp_path, space={"lrr": [0.1]})


def test_a_record_of_another_search_is_not_continued(tmp_path):
    how = {"strategy": "greedy", "seeds": 1}
    search(small_row(), "clean", tmp_path, space={"lr": [0.02]}, **how)
    with pytest.raises(RowError, match="another search"):
        search(small_row(), "clean", tmp_path, space={"width": [5]}, **how)


def test_a_record_of_another_objective_is_not_continued(tmp_path):
    how = {"seeds": 1, "space": {"lr": [0.02]}, "trials": 1}
    search(small_row(), "clean", tmp_path, **how)
    with pytest.raises(RowError, match="another search"):
        search(small_row(), "clean", tmp_path, objective="cross-fitted", **how)


def test_the_report_of_a_search_names_every_change(tmp_path):
    search(small_row(), "clean", tmp_path, strategy="greedy", seeds=1, space={"lr": [0.02], "eta": [[1.0, 0.5, 0.0]]})
    write_search_report(tmp_path)
    page = (tmp_path / "README.md").read_text()
    assert "## nodes/small, clean" in page
    assert "| lr 0.02 |" in page
    assert "| eta 1/0.5/0 |" in page


def test_a_hopeless_trial_is_not_repeated(tmp_path):
    space = {"lr": [0.01, 1e-9]}
    search(small_row(), "clean", tmp_path, strategy="greedy", seeds=3, space=space, margin=-1.0)
    record = json.loads((tmp_path / "nodes-small--clean.json").read_text())
    assert [len(trial["scores"]) for trial in record["trials"]] == [3, 1], "nothing is 100 points above the best"
