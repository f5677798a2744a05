"""Raw columns: kinds are what the cells allow, and nothing is lost on the way in."""

import numpy as np
import pandas as pd
import pytest

from hgde.data import Column, Columns, DataError


def cells(*values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize(
    ("given", "kind", "values"),
    [
        (cells("1", "2.5", "-3e2"), "number", [1, 2.5, -300]),
        (cells("1", "", "NA", "nan", "?", "2"), "number", [1, None, None, None, None, 2]),
        (cells("true", "False", "", "TRUE"), "boolean", [1, 0, None, 1]),
        (cells("yes", "no"), "boolean", [1, 0]),
        (cells("red", "", "blue", "red"), "category", [1, None, 0, 1]),
        (cells("NA", "DE", "FR"), "category", [2, 0, 1]),
        (cells("10", "9", "red"), "category", [1, 0, 2]),
        (np.array([1, 2, 3]), "number", [1, 2, 3]),
        (np.array([1.5, np.nan]), "number", [1.5, None]),
        (np.array([True, False]), "boolean", [1, 0]),
        (np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"), "number", [1704067200000, None]),
        (cells("", ""), "category", [None, None]),
    ],
)
def test_kinds(given, kind, values):
    column = Column.from_cells("a", given)
    assert column.kind == kind
    assert [None if np.isnan(v) else v for v in column.values] == values
    assert column.missing.tolist() == [v is None for v in values]


def test_a_word_among_numbers_is_kept_and_reported():
    column = Column.from_cells("height", cells("1", "2", "tall", "3"), lambda row: f"line {row + 2}")
    assert column.kind == "category"
    assert column.texts == ["1", "2", "tall", "3"]
    assert column.problem == "line 4: expected a finite number, got 'tall'"


def test_infinity_is_reported():
    assert "got 'inf'" in Column.from_cells("a", cells("1", "inf")).problem
    assert "finite number" in Column.from_cells("a", np.array([1, -np.inf])).problem


def test_texts_are_those_of_the_table():
    assert Column.from_cells("a", np.array([1.0, 2.5, np.nan])).texts == ["1", "2.5", ""]
    assert Column.from_cells("a", np.array([True, False])).texts == ["true", "false"]
    assert Column.from_labels("a", ["b", "", "10", "9", "-1.5"]).categories == ("-1.5", "9", "10", "b")


def test_a_frame_keeps_its_kinds():
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [0.5, np.nan, 1.5],
            "b": [True, False, True],
            "maybe": [True, None, False],
            "c": ["red", None, "blue"],
            "when": pd.to_datetime(["2024-01-01", None, "2024-01-02"]),
            "grade": pd.Categorical([3, 1, 2]),
            "digits": ["1", "2", ""],
            "whole": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    columns = Columns.from_frame(frame)
    kinds = {name: column.kind for name, column in columns.items()}
    assert kinds == {
        "n": "number", "x": "number", "b": "boolean", "maybe": "boolean", "c": "category", "when": "number",
        "grade": "category", "digits": "number", "whole": "number",
    }  # fmt: skip
    assert columns["maybe"].missing.tolist() == columns["c"].missing.tolist() == [False, True, False]
    assert columns["grade"].categories == ("1", "2", "3")
    assert columns["when"].values[2] - columns["when"].values[0] == 86_400_000
    assert columns.shape == (3, 9)
    assert not columns.is_plain()
    assert Columns.from_frame(frame[["n"]]).is_plain()


def test_columns_that_do_not_fit_together():
    with pytest.raises(DataError, match="different lengths"):
        Columns.from_arrays({"a": [1, 2], "b": [1]})
    with pytest.raises(DataError, match="two columns are called 'a'"):
        Columns.from_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_rows_and_hashes():
    columns = Columns.from_arrays({"a": [1, 2, 3], "b": ["x", "", "y"]})
    part = columns.select(np.array([2, 0]))
    assert part["a"].values.tolist() == [3, 1]
    assert part["b"].texts == ["y", "x"]
    assert columns.hash == Columns.from_arrays({"a": [1, 2, 3], "b": ["x", "", "y"]}).hash
    others = [
        {"a": [1, 2, 4], "b": ["x", "", "y"]},
        {"a": [1, 2, 3], "b": ["x", "y", "y"]},
        {"c": [1, 2, 3], "b": ["x", "", "y"]},
        {"b": ["x", "", "y"], "a": [1, 2, 3]},
        {"a": [1, 2, 3], "b": ["x", "", "z"]},
    ]
    assert len({columns.hash, *(Columns.from_arrays(other).hash for other in others)}) == 6
    assert columns["b"] == Columns.from_arrays({"b": ["x", "", "y"]})["b"]
    assert columns["b"] != columns["a"]
