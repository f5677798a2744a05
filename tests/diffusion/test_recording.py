"""What a solver does, written down: the entries of a recipe are those of the scheme."""

import pytest
import torch

from hgde.diffusion.recording import NotRecordable, Value, record
from hgde.kernels.cpu.sizes import ADD_UP
from hgde.kernels.plans import START, Recipe
from hgde.solvers.registry import resolve


@pytest.mark.parametrize(("name", "evaluations"), [("heuler", 3), ("hrk4", 12), ("heun", 6), ("euler", 3)])
def test_each_step_asks_for_the_flow_as_often_as_the_scheme(name, evaluations):
    recipe = record(resolve(name), 3.0, 1.0)
    assert recipe.evaluations == evaluations
    assert recipe.final == recipe.entries[-1].result


def test_a_method_with_a_memory_starts_it_from_the_first_state():
    recipe = record(resolve("ham"), 6.0, 1.0)
    assert recipe.evaluations >= 6
    assert recipe.entries[0].arguments == (START,)


def test_combinations_are_added_up_when_they_are_asked_for():
    recipe = Recipe()
    one, two = Value(recipe, {0: 1.0}), Value(recipe, {1: 1.0})
    assert one.number == 0
    assert not recipe.entries
    number = (2 * one - two / 4).number
    (entry,) = recipe.entries
    assert (entry.kind, entry.result, entry.arguments, entry.coefficients) == (ADD_UP, number, (0, 1), (2.0, -0.25))


def test_torch_adds_and_does_nothing_else():
    recipe = Recipe()
    one, two = Value(recipe, {0: 1.0}), Value(recipe, {1: 1.0})
    assert torch.add(one, two, alpha=3.0).terms == {0: 1.0, 1: 3.0}
    for asked in (
        lambda: torch.mul(one, two),
        lambda: torch.add(one, two, out=two),
        lambda: one.norm(),
        lambda: one + 1,
    ):
        with pytest.raises(NotRecordable):
            asked()
