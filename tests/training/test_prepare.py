"""From settings to inputs: which columns a model is given."""

import pytest

from hgde.settings import Settings, SettingsError
from hgde.training.prepare import load_dataset, make_task

DISEASE = Settings(data="disease-sim")


def test_columns_are_left_out_by_number():
    dataset = load_dataset(DISEASE)
    whole, rest = (make_task(dataset, DISEASE.replace(drop_columns=dropped)) for dropped in ("", "0,3"))
    assert rest.features.shape[1] == whole.features.shape[1] - 2


@pytest.mark.parametrize("dropped", ["100000", "-1", "0,100000"])
def test_a_column_that_is_not_there_cannot_be_left_out(dropped):
    dataset = load_dataset(DISEASE)
    with pytest.raises(SettingsError, match=f"the columns 0 to {dataset.num_features - 1}"):
        make_task(dataset, DISEASE.replace(drop_columns=dropped))
