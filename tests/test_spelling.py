import pytest

from hgde.spelling import closest


@pytest.mark.parametrize(
    ("word", "meant"), [("gnc", "gcn"), ("GCN", None), ("gcnn", "gcn"), ("appmp", "appnp"), ("widht", None)]
)
def test_closest_name(word, meant):
    assert closest(word, ["sgc", "gcn", "gat", "appnp"]) == meant


def test_a_very_long_word_is_cut():
    assert closest("a" * 10**6, ["a" * 60]) == "a" * 60
