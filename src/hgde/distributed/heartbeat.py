"""A rank whose machine falls silent closes no connection: ranks therefore show each other that they live."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

logger = logging.getLogger(__name__)

PERIOD = 2.0
SILENCE = 20.0
"""Seconds without a sign of life after which a rank counts as gone."""


class Heartbeat:
    """Counts up in the ranks' common store, watches the others count, and ends this process when one stops."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.store, self.rank, self.size = store, rank, size
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()  # the store must not go while it is spoken to

    def _run(self) -> None:
        seen = {rank: (0, 0.0) for rank in range(self.size) if rank != self.rank}
        looked = time.monotonic()
        while not self._stop.wait(PERIOD):
            # A process that was stopped, or whose machine slept, has not listened meanwhile: that time does not count.
            passed = min(time.monotonic() - looked, 2 * PERIOD)
            looked = time.monotonic()
            try:
                self.store.add(f"hgde/alive/{self.rank}", 1)
                for rank, (count, silence) in seen.items():
                    if self._stop.is_set():
                        return
                    now = self.store.add(f"hgde/alive/{rank}", 0)
                    seen[rank] = (now, 0.0) if now != count else (count, silence + passed)
                    if seen[rank][1] > SILENCE:
                        self._end(f"rank {rank} has given no sign of life for {SILENCE:.0f} s")
            except RuntimeError:  # the store is rank 0's, or torchrun's
                if not self._stop.wait(PERIOD):
                    self._end("the process that holds the ranks' common store is gone")

    def _end(self, what: str) -> None:
        # The main thread may be waiting inside a collective that will never end: nothing less stops it.
        logger.critical(
            "error: rank %d stops: %s; go on from the last checkpoint with --resume, with any number of ranks",
            self.rank,
            what,
        )
        logging.shutdown()  # what handlers have not written yet would be lost
        os._exit(3)
