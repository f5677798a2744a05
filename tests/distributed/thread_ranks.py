"""Ranks that are threads of one process: the same program without sockets, for what does not test those."""

import threading

import torch

from hgde.distributed.ranks import Ranks


class _Room:
    """Where so many threads put a value each and take everyone's."""

    def __init__(self, size):
        self.barrier, self.values = threading.Barrier(size), [None] * size

    def swap(self, rank, value):
        self.values[rank] = value
        self.barrier.wait()
        every = list(self.values)
        self.barrier.wait()
        return every


class ThreadRanks(Ranks):
    def __init__(self, rank, size, room):
        super().__init__()
        self.rank, self.size, self.room = rank, size, room

    def exchange(self, rows, send, receive):
        self.sent += (len(rows) - send[self.rank]) * rows[:1].numel() * rows.element_size()
        split = list(rows.split(list(send)))
        every = self.room.swap(self.rank, split)
        out = torch.cat([parts[self.rank] for parts in every])
        assert len(out) == sum(receive)
        return lambda: out

    def gather(self, value):
        return self.room.swap(self.rank, value)

    def gather_rows(self, rows, counts):
        return torch.cat(self.room.swap(self.rank, rows))

    def to_first(self, value, source):
        every = self.room.swap(self.rank, value)
        return every[source] if self.rank == 0 else None


def on_ranks(size, work):
    """``work(ranks)`` on so many ranks; what each returned, in their order."""
    if size == 1:
        return [work(Ranks())]
    room, results, errors = _Room(size), [None] * size, []

    def live(rank):
        torch.set_num_threads(1)
        try:
            results[rank] = work(ThreadRanks(rank, size, room))
        except BaseException as error:
            errors.append(error)
            room.barrier.abort()

    threads = [threading.Thread(target=live, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
    return results
