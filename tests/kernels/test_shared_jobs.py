"""Short jobs are shared among threads where that is faster just now."""

from hgde.kernels.cpu import threads


def test_both_ways_are_tried_and_the_faster_one_is_kept():
    choice, ways = threads._Choice(), []
    for _ in range(40):
        shared = choice.is_shared()
        ways.append(shared)
        choice.learn(shared, 1.0 if shared else 2.0)
    assert ways[:2] == [False, True]
    assert all(ways[2:])


def test_a_machine_that_becomes_busy_is_noticed_and_forgotten_again():
    choice = threads._Choice()

    def run(count, cost):
        ways = []
        for _ in range(count):
            shared = choice.is_shared()
            ways.append(shared)
            choice.learn(shared, cost[shared])
        return ways

    quiet, busy = (2.0, 1.0), (3.0, 30.0)
    run(40, quiet)
    assert sum(run(100, busy)[10:]) <= 3
    assert sum(run(1000, quiet)[-100:]) >= 95


def test_what_is_known_stays_bounded(monkeypatch):
    monkeypatch.setattr(threads, "_MOST_CHOICES", 4)
    monkeypatch.setattr(threads, "_choices", {})
    for work in range(20):
        threads._choice("some.kernel", work, 2)
    assert len(threads._choices) <= 4
