"""Tables: every cell has valid settings; a small one runs, is killed, goes on, and is checked again."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hgde.data import DATASETS, find_spec
from hgde.experiments.defaults import standings
from hgde.experiments.reproduce import check_again, count_missing, reproduce, search_of, stored_row, write_index
from hgde.experiments.stats import DIFFERENT, EQUAL
from hgde.experiments.table_report import page
from hgde.experiments.tables import NAMES, TableError, load_table, make_table
from hgde.pipeline.settings import make_settings

SMALL = {
    "title": "Small",
    "task": "nodes",
    "trials": 2,
    "systems": ["gcn", "label-propagation", "no-such-system"],
    "data": {
        "disease-sim": {
            "title": "Disease",
            "published": "disease",
            "splits": [0, 1],
            "settings": {
                "data": {"name": "disease-sim", "options": ["num_nodes=200"]},
                "training": {"epochs": 15},
            },
        }
    },
}
PUBLISHED = {"columns": ["disease"], "gcn": [[10.0, 0.5]], "label-propagation": [[99.9, 0.1]]}


def small():
    return make_table("small", SMALL, PUBLISHED)


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_has_settings_that_can_be_used(name):
    table = load_table(name)
    cells = table.cells()
    assert len({cell.path for cell in cells}) == len(cells)
    for cell in cells:
        make_settings(cell.settings)
        if cell.system.is_trained:
            assert search_of(table, cell).trials == table.trials


@pytest.mark.parametrize("name", NAMES)
def test_published_figures_stand_beside_the_right_column(name):
    table = load_table(name)
    for row, figures in table.published.items():
        assert row == "columns" or len(figures) == len(table.published["columns"]), row
    if name == "nodes":
        figures = {(c.data.key, c.system.name): c.published for c in table.cells()}
        assert figures["cora", "hgde-e"] == (84.4, 0.7)
        assert figures["airport", "hybonet"] == (90.9, 1.4)


def test_a_table_of_peers_has_only_what_the_authors_code_was_measured_on(tmp_path):
    content = SMALL | {"kind": "peers", "trials": 1, "systems": ["gcn", "label-propagation", "majority"]}
    table = make_table("peers", content, PUBLISHED)
    assert [cell.system.name for cell in table.cells()] == ["gcn", "label-propagation"]
    reproduce(table, tmp_path, workers=0)
    gcn, propagation = (tmp_path / "peers.md").read_text().splitlines()[-2:]
    assert gcn.endswith("| above |")
    assert propagation.endswith("| **no** |")


def test_data_that_cannot_be_had_leaves_no_failures_behind(tmp_path, monkeypatch):
    spec = find_spec("airport")
    nowhere = tuple(replace(file, address=f"https://nowhere.invalid/{file.name}") for file in spec.files)
    monkeypatch.setitem(DATASETS._entries, "airport", replace(spec, files=nowhere))
    monkeypatch.setenv("HGDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HGDE_DATA", raising=False)
    table = make_table("small", SMALL | {"data": {"airport": {"settings": {"data": {"name": "airport"}}}}})
    said = []
    reproduce(table, tmp_path / "results", workers=0, say=said.append)
    assert "airport is left out: " in said[0]
    assert "HGDE_DATA" in said[0]
    assert not (tmp_path / "results" / "small").exists()


def test_an_unknown_table_is_named():
    with pytest.raises(TableError, match="no table 'node'"):
        load_table("node")


def test_web_graphs_have_five_seeds_on_each_of_ten_splits():
    for data in load_table("hetero").data:
        assert len(data.places) == 50


def test_rivals_are_trained_for_links_until_nothing_improves():
    """Presets for classes of nodes end after 100 or 200 epochs; links take longer."""
    table = load_table("links")
    for cell in table.cells():
        if cell.system.is_trained and cell.system.model != "hgde":
            longest = table.longest_run_of(cell.data)
            assert make_settings(cell.settings, lenient=True).training.epochs >= min(longest.epochs, 1000), cell.path


def test_a_small_table_from_nothing_to_a_page(tmp_path):
    said = []
    store = reproduce(small(), tmp_path, workers=0, say=said.append)
    assert any("no-such-system" in words for words in said)
    rows = {cell.system.name: stored_row(small(), cell, store) for cell in small().cells()}
    assert {name: len(row.scores) for name, row in rows.items()} == {"gcn": 2, "label-propagation": 2}
    text = (tmp_path / "small.md").read_text()
    assert "reached" in text.split("| gcn |")[1].splitlines()[0]
    assert "not reached" in text.split("| label-propagation |")[1].splitlines()[0]
    assert "2 trials" in text
    assert sorted(path.name for path in (tmp_path / "small").iterdir()) == [
        "disease-sim--clean--gcn.json",
        "disease-sim--clean--label-propagation.json",
    ]
    told = []
    reproduce(small(), tmp_path, workers=0, on_done=lambda done, *_: told.append(done))
    assert told == [], "a finished table has nothing to do"
    write_index(tmp_path)


def test_records_of_other_settings_are_missing_and_have_not_failed(tmp_path):
    assert count_missing(small(), tmp_path) == 2 + 2 + 2
    store = reproduce(small(), tmp_path, workers=0)
    assert count_missing(small(), tmp_path) == 0
    other = small()
    other.data[0].settings["training"]["epochs"] = 16
    assert count_missing(other, tmp_path) == 2 + 2 + 2
    cell = next(cell for cell in other.cells() if cell.system.is_trained)
    row = stored_row(other, cell, store)
    assert (row.scores, row.failures) == ({}, [])


def test_failed_trials_are_repeated_on_request(tmp_path):
    reproduce(small(), tmp_path, workers=0)
    path = tmp_path / "small" / "disease-sim--clean--gcn.json"
    whole = json.loads(path.read_text())["records"]["trial-000"]["result"]["score"]
    content = json.loads(path.read_text())
    del content["records"]["trial-000"]["result"]
    content["records"]["trial-000"]["failure"] = "out of memory"
    path.write_text(json.dumps(content))
    reproduce(small(), tmp_path, workers=0)
    assert "failure" in json.loads(path.read_text())["records"]["trial-000"]
    reproduce(small(), tmp_path, workers=0, retry=True)
    assert json.loads(path.read_text())["records"]["trial-000"]["result"]["score"] == whole


def test_a_check_says_equal_and_can_say_different(tmp_path):
    reproduce(small(), tmp_path / "results", workers=0)
    (check,) = check_again(small(), tmp_path / "results", tmp_path / "scratch", workers=0)
    assert check.verdict == EQUAL
    path = tmp_path / "results" / "small" / "disease-sim--clean--gcn.json"
    content = json.loads(path.read_text())
    for key, record in content["records"].items():
        if not key.startswith("trial"):
            record["result"]["test"]["accuracy"] = 0.01
    path.write_text(json.dumps(content))
    (check,) = check_again(small(), tmp_path / "results", tmp_path / "other", workers=0)
    assert check.verdict == DIFFERENT


@pytest.mark.slow
def test_a_table_killed_half_way_goes_on_to_the_same_records(tmp_path):
    reproduce(small(), tmp_path / "whole", workers=0)
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, time\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path\n"
        "from hgde.experiments.reproduce import reproduce\n"
        "from test_tables import small\n"
        "def slowly(*_): time.sleep(1)\n"
        "if __name__ == '__main__':\n"
        f"    reproduce(small(), Path({str(tmp_path / 'killed')!r}), workers=1, on_done=slowly)\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], env=os.environ)
    gcn = tmp_path / "killed" / "small" / "disease-sim--clean--gcn.json"
    deadline = time.monotonic() + 120
    while not gcn.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert gcn.exists()
    done = set(json.loads(gcn.read_text())["records"])
    assert 0 < len(done) < 4
    reproduce(small(), tmp_path / "killed", workers=0)
    for cell in ("disease-sim--clean--gcn", "disease-sim--clean--label-propagation"):
        whole, killed = (_scores(tmp_path / name / "small" / f"{cell}.json") for name in ("whole", "killed"))
        assert whole == killed


def _scores(path):
    """Everything of the records but times and memory."""
    content = json.loads(path.read_text())
    timed = ("seconds", "epoch_ms", "peak_mib")
    return {
        key: {name: value for name, value in record["result"].items() if name not in timed}
        for key, record in content["records"].items()
    }


def test_pages_name_failures(tmp_path):
    broken = make_table("small", {**SMALL, "trials": 1, "systems": ["hgde"]}, {})
    broken.data[0].settings["training"]["lr"] = 1e30
    store = reproduce(broken, tmp_path, workers=0)
    text = page(broken, [(cell, stored_row(broken, cell, store)) for cell in broken.cells()])
    assert "## Failures" in text


def test_standings_by_hand():
    scores = {
        "a": {"hgde": 80.0, "gcn": 79.0, "mlp": 60.0},
        "b": {"hgde": 70.0, "gcn": 73.0, "mlp": 60.0},
        "c": {"hgde": 90.0, "gcn": 90.4, "mlp": 91.0},
    }
    found = {standing.system: standing for standing in standings(scores)}
    assert found["hgde"].rank == pytest.approx((1 + 2 + 3) / 3)
    assert found["gcn"].rank == pytest.approx((2 + 1 + 2) / 3)
    assert found["hgde"].within == pytest.approx(1 / 3)
    assert found["hgde"].worst_to_gcn == pytest.approx(-3.0)
    assert found["hgde"].worst_on == "b"


def test_five_seeds_are_enough_where_a_run_takes_over_a_minute():
    cell = next(cell for cell in load_table("nodes").cells() if cell.system.name == "gcn")
    assert len(cell.places_of_runs(59.0)) == 10
    assert cell.places_of_runs(61.0) == cell.places[:5]
    webs = next(cell for cell in load_table("hetero").cells() if cell.system.name == "gcn")
    assert webs.places_of_runs(61.0) == webs.places, "five seeds on each of ten splits already"


def test_settings_may_be_searched_under_one_protocol_for_all(tmp_path):
    columns = {"disease-sim": SMALL["data"]["disease-sim"] | {"protocols": ["published", "clean"], "splits": [1234]}}
    content = SMALL | {"systems": ["gcn"], "searched": "clean", "data": columns}
    content["longest_trial"], content["longest_run"] = {"epochs": 3, "patience": 3}, {"epochs": 9, "patience": 9}
    table = make_table("small", content, {})
    store = reproduce(table, tmp_path, workers=0)
    published, clean = (store.content(cell.path)["records"] for cell in table.cells())
    assert sorted(published) == ["split-1234/seed-00"]
    assert sorted(clean) == ["split-1234/seed-00", "trial-000", "trial-001"]
    assert clean["trial-000"]["result"]["epochs"] == [3]
    assert published["split-1234/seed-00"]["result"]["epochs"] == 9
    kept = [store.content(cell.path)["settings"] for cell in table.cells()]
    assert {settings["data"]["protocol"] for settings in kept[0].values()} == {"published"}
    rows = [stored_row(table, cell, store) for cell in table.cells()]
    assert [len(row.scores) for row in rows] == [1, 1]
    assert "under the protocol `clean`" in (tmp_path / "small.md").read_text()


def test_a_column_may_have_lengths_and_searches_of_its_own(tmp_path):
    own = {"longest_trial": {"epochs": 2, "patience": 2}, "longest_run": {"epochs": 4, "patience": 4}}
    column = SMALL["data"]["disease-sim"] | {"protocols": ["published", "clean"], "splits": [1234]} | own
    content = SMALL | {"systems": ["gcn"], "searched": "clean", "data": {"disease-sim": column}}
    content["longest_trial"], content["longest_run"] = {"epochs": 3, "patience": 3}, {"epochs": 9, "patience": 9}
    content["data"]["disease-sim"]["searched_apart"] = True
    table = make_table("small", content, {})
    store = reproduce(table, tmp_path, workers=0)
    for cell in table.cells():
        records = store.content(cell.path)["records"]
        assert sorted(records) == ["split-1234/seed-00", "trial-000", "trial-001"], "each has its own search"
        assert records["trial-000"]["result"]["epochs"] == [2]
        assert records["split-1234/seed-00"]["result"]["epochs"] == 4
        assert len(stored_row(table, cell, store).scores) == 1
    page = (tmp_path / "small.md").read_text()
    assert "Here, for all systems: trials of at most 2 epochs" in page
    assert "a search for each protocol" in page


def test_a_column_may_leave_systems_out_and_says_so(tmp_path):
    content = {**SMALL, "data": {key: {**value, "without": ["gcn"]} for key, value in SMALL["data"].items()}}
    table = make_table("small", content)
    assert [cell.system.name for cell in table.cells()] == ["label-propagation"]
    reproduce(table, tmp_path, workers=0)
    assert "Not run here, for the time it would take: gcn." in (tmp_path / "small.md").read_text()
