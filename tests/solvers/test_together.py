"""A state in several parts: step sizes go by the largest number of all of them."""

import pytest
import torch

from hgde.geometry import Euclidean
from hgde.solvers import odeint
from hgde.solvers.control import agreeing, largest

CALM, FAST = torch.tensor([[1.0, 0.0]]).double(), torch.tensor([[3.0, 1.0]]).double()


def swing(t, x):
    """Longer vectors turn faster, so that parts of the state ask for different steps."""
    turned = torch.stack([-x[:, 1], x[:, 0]], -1)
    return turned * x.square().sum(-1, keepdim=True)


def test_the_largest_number_is_that_of_all_parts():
    values = torch.tensor([1.0, 5.0, 2.0])
    assert largest(values) == 5.0
    assert largest(values[:0]) == 0.0
    with agreeing(lambda own: max(own, 7.0)):
        assert largest(values) == 7.0
        with agreeing(lambda own: 2 * own):
            assert largest(values) == 10.0
        assert largest(values) == 7.0
    assert largest(values) == 5.0
    with pytest.raises(RuntimeError, match="lost"), agreeing(lambda own: 9.0):
        raise RuntimeError("lost")
    assert largest(values) == 5.0, "also after a failure"


@pytest.mark.parametrize("method", ["dopri5", "implicit_adams"])
def test_a_part_takes_the_steps_of_the_whole(method):
    options = {"manifold": Euclidean(), "method": method, "rtol": 1e-5, "atol": 1e-7}
    if method != "dopri5":
        options["step"] = 0.05
    said = []

    def listen(own):
        said.append(own)
        return own

    with agreeing(listen):
        both = odeint(swing, torch.cat([CALM, FAST]), [0.0, 1.0], **options)
    assert said
    answers = iter(said)
    with agreeing(lambda own: next(answers)):
        calm = odeint(swing, CALM, [0.0, 1.0], **options)
    assert next(answers, None) is None, "the part asks as often as the whole"
    assert calm.statistics.accepted == both.statistics.accepted
    assert calm.statistics.rejected == both.statistics.rejected
    torch.testing.assert_close(calm.final, both.final[:1], rtol=1e-13, atol=1e-13)
    alone = odeint(swing, CALM, [0.0, 1.0], **options)
    assert alone.statistics.evaluations < both.statistics.evaluations
