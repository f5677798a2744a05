"""A graph cut into pieces on disk: memory-mapped arrays, each with its hash.

``partition.json`` describes it; ``ids.npy`` names the nodes and ``inputs.safetensors`` holds what was fitted to the
data (preprocessing, task); ``pieces/0007/NAME.npy`` are the arrays of a piece. Nodes are numbered anew so that a piece
is a run of them. The rows of a piece are its own nodes, then its *halo*: the nodes of other pieces that it receives
from, ascending.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hgde.files import write_atomically

Array = np.ndarray[Any, Any]
FORMAT = 1
_CHUNK = 1 << 24
_reading = threading.Lock()
"""numpy reads headers with `ast`, which Python 3.11 must not do in two threads at once."""


class PartitionError(RuntimeError):
    """A partition that cannot be used; the message names the file and what to do.

    >>> from hgde.distributed import Partition
    >>> Partition.open("no-such-folder")
    Traceback (most recent call last):
    hgde.distributed.partition.PartitionError: no-such-folder is not a partition (no partition.json in it); ...
    """


def digest_of(path: Path) -> str:
    """SHA-256 of a file, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True)
class Partition:
    """The folder of a partition. :meth:`open` reads its description, arrays are mapped when they are asked for.

    >>> import tempfile
    >>> from hgde import make_settings
    >>> from hgde.distributed import make_partition
    >>> from hgde.pipeline import prepare
    >>> settings = make_settings({"data": {"name": "tree-random", "options": ["num_nodes=40"]}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = make_partition(f"{folder}/parts", prepare(settings), settings, pieces=3, method="contiguous")
    ...     made.check()
    ...     made.num_nodes, made.num_pieces
    (40, 3)
    """

    path: Path
    facts: Mapping[str, Any]

    @classmethod
    def open(cls, path: str | Path) -> Partition:
        folder = Path(path)
        try:
            facts = json.loads((folder / "partition.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise PartitionError(
                f"{folder} is not a partition (no partition.json in it); make one with `hgde partition --out {folder}`"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise PartitionError(f"{folder / 'partition.json'} cannot be read: {error}; cut the graph again") from None
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            found = facts.get("format") if isinstance(facts, dict) else type(facts).__name__
            raise PartitionError(f"{folder} is of format {found!r}, this version reads {FORMAT}; cut the graph again")
        return cls(folder, facts)

    @property
    def num_nodes(self) -> int:
        return int(self.starts[-1])

    @property
    def num_edges(self) -> int:
        return int(self.facts["edges"])

    @property
    def num_pieces(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return tuple(int(start) for start in self.facts["starts"])

    @property
    def hash(self) -> str:
        """One number for everything in it: the hash of the files' hashes."""
        listed = json.dumps(self.facts["files"], sort_keys=True) + json.dumps(self.facts["starts"])
        return hashlib.sha256(listed.encode()).hexdigest()

    def names(self, piece: int) -> list[str]:
        """The arrays that a piece has."""
        prefix = f"pieces/{piece:04d}/"
        return [name[len(prefix) : -4] for name in self.facts["files"] if name.startswith(prefix)]

    def array(self, name: str) -> Array:
        """An array of the folder, mapped: ``"ids"``, ``"pieces/0007/indices"``. Changes to it are not written."""
        path = self.path / f"{name}.npy"
        try:
            with _reading:
                array: Array = np.load(path, mmap_mode="c", allow_pickle=False)
        except FileNotFoundError:
            raise PartitionError(f"{path} is missing; put it back, or cut the graph again") from None
        except (OSError, ValueError, EOFError) as error:
            raise PartitionError(f"{path} is damaged ({error}); put it back, or cut the graph again") from None
        return array

    def piece_array(self, piece: int, name: str) -> Array:
        return self.array(f"pieces/{piece:04d}/{name}")

    def check(self, pieces: Iterator[int] | range | None = None) -> None:
        """Read the files of some pieces (all by default) and hold them against their hashes; refuse by name."""
        wanted = range(self.num_pieces) if pieces is None else pieces
        prefixes = tuple(f"pieces/{piece:04d}/" for piece in wanted)
        for name, expected in self.facts["files"].items():
            if name.startswith("pieces/") and not name.startswith(prefixes):
                continue
            path = self.path / name
            if not path.is_file():
                raise PartitionError(f"{path} is missing; put it back, or cut the graph again")
            if digest_of(path) != expected:
                raise PartitionError(
                    f"{path} is damaged: its hash is not the one it was written with; cut the graph again"
                )


class Writer:
    """Writes a partition; the description comes last, so that a folder that has one is whole."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if (self.path / "partition.json").exists():
            raise PartitionError(f"{self.path} holds a partition already; choose another folder")
        self.files: dict[str, str] = {}

    def array(self, name: str, values: Array) -> None:
        path = self.path / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, values, allow_pickle=False)
        self.files[f"{name}.npy"] = digest_of(path)

    def piece(self, number: int, arrays: Mapping[str, Array | None]) -> None:
        for name, values in arrays.items():
            if values is not None:
                self.array(f"pieces/{number:04d}/{name}", values)

    def known(self, name: str) -> None:
        """Take up a file that was written by other means."""
        self.files[name] = digest_of(self.path / name)

    def finish(self, facts: Mapping[str, Any]) -> Partition:
        content = {"format": FORMAT, **facts, "files": dict(sorted(self.files.items()))}
        write_atomically(self.path / "partition.json", (json.dumps(content, indent=1) + "\n").encode())
        return Partition.open(self.path)
