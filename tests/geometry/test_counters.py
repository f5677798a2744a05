"""Projections are counted by whom they concern: blocks that are open, in the thread that opened them."""

import threading

import torch

from hgde.geometry import count_projections
from hgde.geometry.numerics import counting_projections, record_projections


def test_blocks_nest_and_close():
    assert not counting_projections()
    record_projections(torch.tensor(9))
    with count_projections() as outer:
        assert counting_projections()
        record_projections(torch.tensor(2))
        with count_projections() as inner:
            record_projections(torch.tensor(3))
        assert inner.total == 3
        record_projections(torch.tensor(4))
    assert not counting_projections()
    record_projections(torch.tensor(9))
    assert (outer.total, inner.total) == (9, 3)
    assert outer.total == 9, "reading twice counts once"


def test_threads_count_their_own():
    totals = {}
    both_open = threading.Barrier(2)

    def work(number):
        with count_projections() as counter:
            both_open.wait()
            record_projections(torch.tensor(number))
            both_open.wait()
            totals[number] = counter.total

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 10)]
    with count_projections() as mine:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        record_projections(torch.tensor(100))
    assert totals == {1: 1, 10: 10}
    assert mine.total == 100
