"""A table in one sentence, from its numbers, on its page and in the list of all tables."""

import dataclasses

from hgde.experiments.headlines import headline, headline_of
from hgde.experiments.reproduce import write_index
from hgde.experiments.systems import System
from hgde.experiments.table import Row
from hgde.experiments.table_report import page
from hgde.experiments.tables import load_table


def filled(name, scores, **more):
    """Cells of a table whose system and column have scores, each with three runs around its mean."""
    table = load_table(name)
    cells = [cell for cell in table.cells() if (cell.data.key, cell.system.name) in scores]
    assert cells
    return table, [(cell, row_of(cell.system, scores[cell.data.key, cell.system.name], **more)) for cell in cells]


def row_of(system: System, mean: float, **more) -> Row:
    return Row(system, "accuracy", {(0, k): mean + 0.1 * (k - 1) for k in range(3)}, 3, **more)


def test_scores_name_the_best_of_whole_columns_and_count_verdicts():
    systems = load_table("nodes").systems
    scores = {("cora", name): 70.0 for name in systems} | {("citeseer", name): 50.0 for name in systems[1:]}
    said = headline(*filled("nodes", scores | {("cora", "hgde-e"): 86.0, ("citeseer", "gcn"): 80.0}))
    assert said.startswith("best of all: hgde-e on 1 of 1 columns; 9 of 10 columns are not complete;"), said
    assert "published figures of HGDE: 1 reached, 0 undecided, 3 not reached" in said
    assert "published figures of the others: 3 reached, 0 undecided, 17 not reached" in said


def test_an_unfinished_cell_does_not_count():
    table, cells = filled("nodes", {("cora", "hgde-e"): 86.0, ("cora", "gcn"): 70.0})
    unfinished = [(cell, dataclasses.replace(row, expected=10)) for cell, row in cells]
    assert headline(table, unfinished) == ""
    assert "In short" not in page(table, unfinished)


def test_the_best_of_a_column_stands_out_where_the_column_is_whole():
    systems = load_table("nodes").systems
    scores = {("cora", name): 70.0 for name in systems} | {("citeseer", name): 50.0 for name in systems[1:]}
    table, cells = filled("nodes", scores | {("cora", "hgde-e"): 86.0, ("citeseer", "gcn"): 80.0})
    lines = page(table, cells).splitlines()
    assert [line.split(" | ")[0] for line in lines if "**8" in line] == ["| hgde-e"]


def test_a_column_with_one_split_says_what_its_standard_errors_leave_out():
    table, cells = filled("nodes", {("cora", "gcn"): 80.0, ("cora", "mlp"): 60.0}, tested=1000)
    assert "One split, 1000 tested" in page(table, cells)
    assert "(1.3 points at the best score here" in page(table, cells)
    other = [(cell, dataclasses.replace(row, metric="roc_auc")) for cell, row in cells]
    assert "points at the best" not in page(table, other)
    assert "One split" not in page(*filled("hetero", {("texas", "gcn"): 60.0}, tested=37))


def test_peers_within_two_points():
    said = headline(*filled("peers", {("cora", "gcn"): 82.0, ("cora", "gat"): 79.0, ("cora", "gcnii"): 90.0}))
    assert said == "1 of 3 within 2 points of the authors' code, 1 above."


def test_cost_at_the_greatest_depth():
    table, cells = filled("cost", {("16", name): 80.0 for name in ("hgde", "gcn", "lgcn")})
    times = {"hgde": 13.0, "gcn": 18.0, "lgcn": 135.0}
    timed = [(cell, dataclasses.replace(row, epoch_ms=times[row.name], peak_mib=9.0)) for cell, row in cells]
    assert headline(table, timed) == (
        "at depth 16 an epoch of HGDE takes 13 ms and 9 MiB, of the others 18 ms (gcn) to 135 ms (lgcn)."
    )


def test_defaults_and_curvature():
    said = headline(*filled("defaults", {("cora", "hgde"): 84.0, ("cora", "gcn"): 82.0}))
    assert said == "classes: over 1 graphs hgde has the best mean rank, 1.00 (next: gcn, 2.00)."
    both = {("cora", "hgde"): 84.0, ("cora", "gcn"): 82.0, ("cora-links", "hgde"): 90.0, ("cora-links", "sage+"): 91.0}
    said = headline(*filled("defaults", both))
    assert said.endswith("; links: over 1 graphs sage+ has the best mean rank, 1.00 (next: hgde, 2.00).")
    said = headline(*filled("curvature", {("cora", "hgde"): 84.0, ("cora", "hgde-flat"): 80.0}))
    assert said == "no difference shown on 1 of 1 graphs.", "three equal differences may be chance"


def test_the_list_of_tables_repeats_the_sentence(tmp_path):
    table, cells = filled("nodes", {("cora", "hgde-e"): 86.0, ("cora", "gcn"): 70.0})
    (tmp_path / "nodes").mkdir()
    empty = '{"format": 1, "about": {}, "records": {}, "settings": {}, "versions": {}}'
    (tmp_path / "nodes" / "cora--clean--gcn.json").write_text(empty)
    (tmp_path / "nodes.md").write_text(page(table, cells))
    said = headline(table, cells)
    assert headline_of(tmp_path / "nodes.md") == said
    (tmp_path / "bench.json").write_text("{}")
    listed = write_index(tmp_path).read_text()
    assert f"| [nodes](nodes.md) | Node classification | {said} | 1 | 0 |" in listed
    assert "`bench.json`" in listed
    assert "`scale.json`" not in listed


def test_a_page_that_is_not_there_says_nothing(tmp_path):
    assert headline_of(tmp_path / "none.md") == ""
