"""Who follows long work: lines to be said, and stages of which every finished job is heard."""

from __future__ import annotations

from hgde.experiments.jobs import Done, OnDone
from hgde.progress import Stages


class Follower:
    """Hears of stages and says nothing; the base of those who do."""

    def say(self, words: str) -> None:
        """A line about what comes next or was left out."""

    def stage(self, words: str, total: int | None, minutes: float | None = None) -> OnDone:
        """A stage of ``total`` jobs begins (``None``: as many as there are minutes for); gives who hears of them."""
        return lambda done, count, all_of_them: None


class BarFollower(Follower):
    """Bars in a terminal, lines elsewhere: see :class:`hgde.progress.Stages`."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages

    def say(self, words: str) -> None:
        self.stages.say(words)

    def stage(self, words: str, total: int | None, minutes: float | None = None) -> OnDone:
        advance = self.stages.stage(words, total, None if minutes is None else 60 * minutes)

        def heard(done: Done, count: int, all_of_them: int) -> None:
            advance(done.job.name, done.failure)

        return heard
