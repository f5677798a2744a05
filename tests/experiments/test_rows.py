"""Rows of the published tables: every file parses, and a table runs, resumes and is told against what was published."""

import json

import pytest

from hgde.experiments.reproduce import Job, load_result, pending, reproduce, result_path, write_report
from hgde.experiments.rows import TABLES, Row, RowError, read_row, read_rows
from hgde.experiments.search import search
from hgde.report.tables import verdict

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


def test_a_table_runs_keeps_each_run_and_does_not_run_it_again(tmp_path):
    row = small_row()
    told = []
    results = reproduce([row], tmp_path, workers=1, on_done=lambda job, outcome, n, total: told.append(job.run))
    assert sorted(told) == [0, 1]
    assert [run["seed"] for run in results[0].runs] == [0, 1]
    assert {"majority", "logistic regression", "decision tree"} <= set(results[0].baselines)
    assert results[0].runs[0]["split_hash"] == results[0].runs[1]["split_hash"]
    assert list(pending([row], tmp_path, None)) == []

    path = result_path(tmp_path, Job(row, "clean", 0))
    content = json.loads(path.read_text())
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


def test_a_search_records_validation_scores_only_and_goes_on_where_it_was(tmp_path):
    space = {"width": [3, 4], "lr": [0.01, 0.02]}
    seen = []
    best = search(small_row(), "clean", tmp_path, trials=2, seeds=1, space=space, on_trial=lambda *t: seen.append(t))
    record = json.loads((tmp_path / "nodes-small--clean.json").read_text())
    assert len(record["trials"]) == 2
    assert "test" not in json.dumps(record["trials"])
    assert record["trials"][0]["settings"] == {"width": 4, "lr": 0.01}, "the first trial is the row itself"
    search(small_row(), "clean", tmp_path, trials=3, seeds=1, space=space)
    longer = json.loads((tmp_path / "nodes-small--clean.json").read_text())
    assert longer["trials"][:2] == record["trials"]
    assert set(best) == set(space)
