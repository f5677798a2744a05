"""The processes of a run. Everything that crosses from one to another passes here, and is counted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from hgde.distributed.cores import bind_to_cores
from hgde.distributed.heartbeat import Heartbeat

Wait = Callable[[], Tensor]


class RankError(RuntimeError):
    """Ranks that cannot work together, or one that is gone; the message says which and what to do.

    >>> raise RankError("rank 1 has other versions than rank 0")
    Traceback (most recent call last):
    hgde.distributed.ranks.RankError: rank 1 has other versions than rank 0
    """


class Ranks:
    """One process by itself: rank 0 of 1. Subclasses send.

    ``sent`` counts the bytes of rows that left this process, so that a run can be held against its cost model.

    >>> alone = Ranks()
    >>> alone.size, alone.is_first, alone.gather("here")
    (1, True, ['here'])
    """

    rank: int = 0
    size: int = 1

    def __init__(self) -> None:
        self.sent = 0

    def exchange(self, rows: Tensor, send: Sequence[int], receive: Sequence[int]) -> Wait:
        """Begin to send ``rows [sum(send), ...]``, so many to each rank, and receive as many as each has for us.

        The call that is returned waits for them: ``[sum(receive), ...]``, in the order of the ranks.
        """
        return lambda: rows

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, in their order, on every rank. For small things: they are pickled."""
        return [value]

    def gather_rows(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all ranks below each other, on every rank; ``counts`` says how many each has."""
        return rows

    def to_first(self, value: Any, source: int) -> Any:
        """Hand what rank ``source`` has to rank 0; ``None`` elsewhere. Every rank calls it."""
        return value

    def close(self) -> None:
        """Say goodbye."""

    @property
    def is_first(self) -> bool:
        return self.rank == 0


class GroupRanks(Ranks):
    """The processes of a ``torch.distributed`` group: gloo on CPUs, nccl where the rows are on CUDA (untested)."""

    def __init__(self, seconds: float = 1800.0) -> None:
        import torch.distributed as dist
        from torch._C._distributed_c10d import PrefixStore
        from torch.distributed.rendezvous import rendezvous

        super().__init__()
        self._dist = dist
        self._heartbeat: Heartbeat | None = None
        if not dist.is_initialized():
            backend = "nccl" if torch.cuda.is_available() else "gloo"
            limit = timedelta(seconds=seconds)
            try:
                store, rank, size = next(rendezvous("env://", timeout=limit))
                dist.init_process_group(
                    backend, store=PrefixStore("hgde", store), rank=rank, world_size=size, timeout=limit
                )
            except (RuntimeError, ValueError) as error:
                raise RankError(f"the ranks did not find each other: {_first_line(error)}") from error
            self._heartbeat = Heartbeat(store, rank, size)
            signal.signal(signal.SIGTERM, _terminated)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def exchange(self, rows: Tensor, send: Sequence[int], receive: Sequence[int]) -> Wait:
        given = rows.contiguous()
        out = given.new_empty((sum(receive), *given.shape[1:]))
        self.sent += (len(given) - send[self.rank]) * given[:1].numel() * given.element_size()
        work = self._guarded(lambda: self._dist.all_to_all_single(out, given, list(receive), list(send), async_op=True))

        def wait(sent: Tensor = given) -> Tensor:  # what is being sent must live until it is
            self._guarded(work.wait)
            return out

        return wait

    def gather(self, value: Any) -> list[Any]:
        values: list[Any] = [None] * self.size
        self._guarded(lambda: self._dist.all_gather_object(values, value))
        return values

    def gather_rows(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        most = max(counts)
        padded = rows.new_zeros((most, *rows.shape[1:]))
        padded[: len(rows)] = rows
        lines = [torch.empty_like(padded) for _ in counts]
        self._guarded(lambda: self._dist.all_gather(lines, padded))
        return torch.cat([line[:count] for line, count in zip(lines, counts, strict=True)])

    def to_first(self, value: Any, source: int) -> Any:
        if source == 0:
            return value if self.rank == 0 else None
        box = [value]
        if self.rank == source:
            self._guarded(lambda: self._dist.send_object_list(box, dst=0))
        elif self.rank == 0:
            self._guarded(lambda: self._dist.recv_object_list(box, src=source))
            return box[0]
        return None

    def close(self) -> None:
        if self._heartbeat is not None:
            self._dist.barrier()
            self._heartbeat.stop()
        if self._dist.is_initialized():
            self._dist.destroy_process_group()

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except RuntimeError as error:
            raise RankError(
                f"rank {self.rank} lost touch with another rank ({_first_line(error)}); it was probably killed or its "
                "machine is gone. Go on from the last checkpoint with --resume, with any number of ranks"
            ) from error


def _terminated(number: int, frame: Any) -> None:
    """``torchrun`` ends the other ranks when one has died: they say so, as far as they can still speak."""
    raise RankError("this rank was asked to stop, most likely because another one died; go on with --resume")


def join() -> Ranks:
    """The ranks that ``torchrun`` (or ``--ranks``) has started, or this process alone.

    >>> join().size      # one process, unless torchrun has started more
    1
    """
    bind_to_cores()
    return GroupRanks() if int(os.environ.get("WORLD_SIZE", "1")) > 1 else Ranks()


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
