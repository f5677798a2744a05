"""Preprocessing: fitted once, matched by name, the same after a round trip, and exact where numbers are awkward."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix

from hgde.data import STEPS, Columns, DataError, Dataset, DataWarning, PreprocessingSettings, Preprocessor, Step
from hgde.graph import Graph, SparseFeatures
from hgde.registry import RegistryError, untrusted
from hgde.sections import SettingsError


def dataset(features, **changes):
    return Dataset("mine", Graph.from_edges([], int(features.shape[0])), features, **changes)


def frame(**columns):
    return dataset(Columns.from_frame(pd.DataFrame(columns)))


def fit(data, **settings):
    return Preprocessor.fit(data, PreprocessingSettings(**settings))


def again(preprocessor):
    """The same through its stored form, which JSON can hold."""
    values, tensors = preprocessor.state()
    return Preprocessor.from_state(json.loads(json.dumps(values)), tensors)


def dense(features):
    return features.to_dense() if isinstance(features, SparseFeatures) else features


def mixed(num_rows=40, seed=0):
    random = np.random.RandomState(seed)
    return pd.DataFrame(
        {
            "age": random.randint(18, 90, num_rows),
            "height": np.where(random.rand(num_rows) < 0.2, np.nan, random.randn(num_rows)),
            "colour": random.choice(["red", "green", "blue"], num_rows),
            "smokes": random.rand(num_rows) < 0.3,
            "when": 1_700_000_000_000 + random.randint(0, 1000, num_rows),
        }
    )


# --- matrices


def matrices():
    random = np.random.RandomState(0)
    dense_rows = torch.from_numpy(random.randn(30, 7).astype(np.float32) * 3 + 1)
    sparse_rows = SparseFeatures.from_scipy(csr_matrix((random.rand(30, 50) < 0.1).astype(np.float32)))
    return {"dense": dense_rows, "sparse": sparse_rows}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("how", ["auto", "words", "none", "rows", "unit", "columns"])
def test_matrices_are_scaled_by_the_written_formulas(kind, how):
    features = matrices()[kind]
    x = dense(features)
    found = again(fit(dataset(features), normalise=how)).transform(dataset(features))
    deviation = x.std(0, correction=0)
    deviation[deviation == 0] = 1
    expected = {
        "none": lambda: x,
        "rows": lambda: x / x.abs().sum(1, keepdim=True).clamp_min(1e-30),
        "unit": lambda: x / x.norm(dim=1, keepdim=True).clamp_min(1e-30),
        "columns": lambda: (x - x.mean(0)) / (deviation * x.shape[1] ** 0.5),
    }[{"auto": ("columns", "unit"), "words": ("columns", "rows")}.get(how, (how, how))[kind == "sparse"]]()
    torch.testing.assert_close(dense(found), expected)
    assert found.dtype == torch.float32
    assert isinstance(found, SparseFeatures) == (kind == "sparse" and how != "columns")


def test_new_rows_meet_the_scale_of_those_trained_on():
    features = matrices()["dense"]
    preprocessor = fit(dataset(features))
    shifted = preprocessor.transform(dataset(features[:5] + 100))
    torch.testing.assert_close(
        shifted, (features[:5] + 100 - features.mean(0)) / (features.std(0, correction=0) * 7**0.5)
    )


def test_a_matrix_is_matched_by_count_or_by_names():
    features = matrices()["dense"]
    plain = fit(dataset(features))
    with pytest.raises(DataError, match="there are 6 features, the model was trained on 7"):
        plain.transform(dataset(features[:, :6]))
    names = list("abcdefg")
    named = fit(dataset(features, feature_names=names))
    flipped = dataset(features.flip(1), feature_names=names[::-1])
    assert torch.equal(named.transform(flipped), plain.transform(dataset(features)))
    with pytest.raises(DataError, match=r"column 'g' is missing.*the model does not know 'h'"):
        named.transform(dataset(features, feature_names=list("abcdefh")))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_columns_are_dropped_by_number_or_name(kind):
    features = matrices()[kind]
    x, width = dense(features), features.shape[1]
    names = [f"f{n}" for n in range(width)]
    for drop, options in ((("0", "3"), {}), (("f0", "3"), {"feature_names": names})):
        rest = fit(dataset(features, **options), normalise="none", drop_columns=drop)
        kept = [n for n in range(width) if n not in (0, 3)]
        assert torch.equal(dense(rest.transform(dataset(features, **options))), x[:, kept])
        assert rest.num_outputs == width - 2
        assert rest.output_names[0] == ("f1" if options else "1")
    for wrong in ("100000", "-1", "nothing"):
        with pytest.raises(SettingsError, match=f"drop_columns names column {wrong}; mine has the columns 0 to"):
            fit(dataset(features), drop_columns=("0", wrong))
    with pytest.raises(SettingsError, match="mine has the columns f0, f1"):
        fit(dataset(features, feature_names=names), drop_columns=("nothing",))


def test_nothing_left_is_an_error():
    with pytest.raises(DataError, match="no feature column is left"):
        fit(dataset(torch.ones(3, 1)), drop_columns=("0",))


def test_one_hot_numbers_of_another_graph_say_what_is_wrong():
    from hgde.data import identity_features

    trained = fit(dataset(identity_features(5), meta={"features": "identity"}))
    with pytest.raises(DataError, match="describe the nodes of one graph only"):
        trained.transform(dataset(identity_features(6), meta={"features": "identity"}))


# --- tables


def test_a_table_of_all_kinds():
    table = mixed()
    data = dataset(Columns.from_frame(table))
    preprocessor = again(fit(data))
    assert preprocessor.output_names == [
        "age", "height", "height missing", "colour=blue", "colour=green", "colour=red", "smokes", "when",
    ]  # fmt: skip
    x = preprocessor.transform(data)
    assert x.shape == (40, preprocessor.num_outputs)
    root = 5**0.5
    age = (table["age"] - table["age"].mean()) / table["age"].std(ddof=0)
    np.testing.assert_allclose(x[:, 0], age / root, atol=1e-12)
    missing = table["height"].isna().to_numpy().copy()
    assert np.allclose(x[missing, 1], 0), "the mean, and thus zero after centring"
    np.testing.assert_allclose(x[:, 2], missing / root)
    np.testing.assert_allclose(x[:, 5], (table["colour"] == "red") / root)
    assert float(x.square().sum(1).mean()) == pytest.approx(1, abs=0.15), "rows have length one on average"


def test_reversed_and_shuffled_columns_predict_the_same():
    table = mixed()
    preprocessor = fit(dataset(Columns.from_frame(table)))
    expected = preprocessor.transform(dataset(Columns.from_frame(table)))
    for order in (list(table)[::-1], ["when", "age", "smokes", "height", "colour"]):
        assert torch.equal(preprocessor.transform(dataset(Columns.from_frame(table[order]))), expected)


def test_missing_and_unknown_columns_are_refused_by_name():
    table = mixed()
    preprocessor = fit(dataset(Columns.from_frame(table)))
    with pytest.raises(DataError, match="column 'colour' is missing, and the model was trained with it"):
        preprocessor.transform(dataset(Columns.from_frame(table.drop(columns="colour"))))
    with pytest.raises(DataError, match="column 'size' was not among the training columns"):
        preprocessor.transform(dataset(Columns.from_frame(table.assign(size=1))))
    with pytest.raises(DataError, match=r"column 'colour' is missing.*the model does not know 'color'"):
        preprocessor.transform(dataset(Columns.from_frame(table.rename(columns={"colour": "color"}))))


def test_a_dropped_column_may_be_there_or_not():
    table = mixed()
    preprocessor = again(fit(dataset(Columns.from_frame(table)), drop_columns=("colour", "0")))
    assert preprocessor.output_names == ["height", "height missing", "smokes", "when"]
    with_it = preprocessor.transform(dataset(Columns.from_frame(table)))
    without = preprocessor.transform(dataset(Columns.from_frame(table.drop(columns="colour"))))
    assert torch.equal(with_it, without)


def test_unknown_categories_are_no_category_and_one_warning_counts_them():
    preprocessor = fit(frame(colour=["red", "blue"] * 5, size=range(10)), normalise="none")
    other = frame(colour=["red", "pink", "green", "blue"], size=range(4))
    with pytest.warns(DataWarning, match="'colour' holds 2 values not seen in training, such as 'pink'") as w:
        x = preprocessor.transform(other)
    assert len(w) == 1
    assert x[:, :2].tolist() == [[0, 1], [0, 0], [0, 0], [1, 0]]


def test_missing_values_in_each_way():
    data = frame(x=[1.0, np.nan, 3.0, 4.0], c=["a", "b", None, "a"], b=[True, None, True, False])
    named = {
        "indicator": ["x", "x missing", "c=a", "c=b", "c missing", "b", "b missing"],
        "mean": ["x", "c=a", "c=b", "b"],
    }
    for how, names in named.items():
        preprocessor = again(fit(data, missing=how, normalise="none"))
        assert preprocessor.output_names == names
        x = dict(zip(names, preprocessor.transform(data).T.tolist(), strict=True))
        assert x["x"] == pytest.approx([1, 8 / 3, 3, 4])
        assert x["b"] == [1, 1, 1, 0], "the commonest"
        assert x["c=a"] == ([1, 0, 0, 1] if how == "indicator" else [1, 0, 1, 1])
    with pytest.raises(DataError, match="column 'x' has 1 missing values, the first in row 2"):
        fit(data, missing="error")
    complete = fit(frame(x=[1.0, 2.0]), missing="error", normalise="none")
    with pytest.raises(DataError, match="which the settings call an error"):
        complete.transform(frame(x=[1.0, np.nan]))


def test_values_missing_for_the_first_time_are_imputed_with_a_warning():
    preprocessor = fit(frame(x=[1.0, 2.0, 6.0], c=["a", "a", "b"]), normalise="none")
    with pytest.warns(DataWarning, match="'x' has 1 missing values and had none in training"):
        x = preprocessor.transform(frame(x=[np.nan, 5.0], c=["b", "a"]))
    assert x.tolist() == [[3, 0, 1], [5, 1, 0]]


def test_large_offsets_keep_what_varies():
    """Milliseconds since 1970 in float32 are good to two minutes; here single milliseconds matter."""
    stamps = 1_700_000_000_000 + np.arange(8)
    x = fit(frame(when=stamps)).transform(frame(when=stamps)).float().flatten()
    exact = (np.arange(8) - 3.5) / np.arange(8).std()
    np.testing.assert_allclose(x, exact, rtol=1e-6)
    with pytest.warns(DataWarning, match="'when' is far from zero for its spread"):
        fit(frame(when=stamps), normalise="none")


def test_a_constant_far_from_zero_is_zero():
    data = frame(a=[1e15 + 1 / 3] * 7, b=range(7))
    assert torch.equal(fit(data).transform(data)[:, 0], torch.zeros(7, dtype=torch.float64))


def test_numbers_as_categories_when_asked():
    data = frame(code=[3, 1, 3, 2], x=[0.1, 0.2, 0.3, 0.4])
    preprocessor = again(fit(data, categorical=("code",), normalise="none"))
    assert preprocessor.output_names == ["code=1", "code=2", "code=3", "x"]
    with pytest.warns(DataWarning, match="such as 'x'"):
        assert preprocessor.transform(frame(code=["3", "1", "1", "x"], x=[0.0] * 4))[:, 2].tolist() == [1, 0, 0, 0]
    with pytest.raises(SettingsError, match="categorical names column 'nothing'; there are code, x"):
        fit(data, categorical=("nothing",))
    with pytest.raises(SettingsError, match="categorical names column 'code'; it is dropped"):
        fit(data, categorical=("code",), drop_columns=("code",))
    with pytest.raises(SettingsError, match="matrix of numbers"):
        fit(dataset(torch.ones(3, 2)), categorical=("0",))


def test_a_category_that_looks_like_numbers_in_the_next_table_is_still_one():
    preprocessor = fit(frame(code=["1", "2.50", "A"] * 4), normalise="none", categorical=("code",))
    x = preprocessor.transform(frame(code=[2.5, 1.0]))
    assert x.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_names_are_not_categories():
    data = frame(name=[f"node {n}" for n in range(100)], x=range(100))
    with pytest.warns(DataWarning, match="column 'name' is left out: 100 different values in 100 rows"):
        preprocessor = fit(data)
    assert preprocessor.output_names == ["x"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        preprocessor.transform(data)
        preprocessor.transform(frame(x=range(3)))
    assert fit(data, categorical=("name",)).num_outputs == 101
    many = frame(name=[f"v{n // 3}" for n in range(6000)])
    with pytest.raises(DataError, match="2000 different values, more than 1000 categories"):
        fit(many)


def test_an_empty_column_is_left_out():
    with pytest.warns(DataWarning, match="column 'e' is left out: it has no values"):
        assert fit(frame(e=[np.nan, np.nan], x=[1, 2])).output_names == ["x"]


def test_a_word_among_numbers_is_an_error_unless_meant_as_a_category():
    data = frame(height=["1", "2", "tall", "3"])
    with pytest.raises(DataError, match=r"row 3, column height: expected a finite number, got 'tall'; .*categorical"):
        fit(data)
    assert fit(data, categorical=("height",)).num_outputs == 4
    numbers = fit(frame(height=[1, 2, 3]))
    with pytest.raises(DataError, match=r"'height' held numbers in training; row 3, column height: .*'tall'"):
        numbers.transform(data)


def test_a_wide_table_of_mostly_zeros_is_sparse():
    words = (np.random.RandomState(0).rand(60, 30) < 0.08).astype(int)
    data = dataset(Columns.from_frame(pd.DataFrame(words, columns=[f"w{n}" for n in range(30)])))
    found = again(fit(data)).transform(data)
    assert isinstance(found, SparseFeatures)
    matrix = dataset(SparseFeatures.from_scipy(csr_matrix(words.astype(np.float32))))
    torch.testing.assert_close(found.to_dense().float(), fit(matrix).transform(matrix).to_dense())
    one = again(fit(data)).transform(dataset(data.features.select(np.array([0]))))
    assert isinstance(one, SparseFeatures), "what was decided in training holds for one dense row too"


def test_tables_and_matrices_of_numbers_stand_in_for_each_other():
    values = np.random.RandomState(0).randn(20, 3)
    table = dataset(Columns.from_frame(pd.DataFrame(values, columns=list("abc"))))
    matrix = dataset(torch.from_numpy(values))
    torch.testing.assert_close(fit(table).transform(matrix), fit(matrix).transform(matrix))
    torch.testing.assert_close(fit(matrix).transform(table), fit(matrix).transform(matrix))
    words = frame(a=["x", "y"], b=[1, 2], c=[1, 2])
    with pytest.raises(DataError, match="column 'a' must hold a number in every row"):
        fit(matrix).transform(words)


# --- steps


@pytest.mark.parametrize("name", [*STEPS, "auto"])
def test_every_step_comes_back_from_its_state(name):
    for features in matrices().values():
        preprocessor = fit(dataset(features), normalise=name)
        stored = again(preprocessor)
        assert stored.how == preprocessor.how
        first, second = (dense(p.transform(dataset(features[:9] if isinstance(features, torch.Tensor) else features)))
                         for p in (preprocessor, stored))  # fmt: skip
        assert torch.equal(first, second)
        assert stored.output_names == preprocessor.output_names


def test_further_steps_come_before_normalising():
    features = matrices()["dense"]
    found = again(fit(dataset(features), steps=("log",), normalise="none")).transform(dataset(features))
    torch.testing.assert_close(found, features.sign() * (features.abs() + 1).log())
    sparse = matrices()["sparse"]
    assert isinstance(fit(dataset(sparse), steps=("log",)).transform(dataset(sparse)), SparseFeatures)


class Doubled(Step):
    """A step of a third party."""

    def transform(self, inputs):
        return inputs.with_features(inputs.features * 2)


def test_a_step_of_ones_own():
    features = matrices()["dense"]
    name = f"{__name__}:Doubled"
    preprocessor = fit(dataset(features), normalise=name)
    assert torch.equal(preprocessor.transform(dataset(features)), 2 * features)
    with untrusted():
        assert again(preprocessor).how == name, "this module is loaded already"
    with pytest.raises(RegistryError, match="unknown preprocessing step 'row'; did you mean 'rows'"):
        fit(dataset(features), normalise="row")
