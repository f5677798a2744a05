"""The folder of a run: self-contained, written atomically, locked while it is worked on, read as untrusted input.

``settings.json``, ``run.json`` (hashes, versions), ``data.safetensors`` (the data set), ``problem.safetensors`` (its
parts and the graph that messages travel on), ``summary.json`` and, for each seed, ``seed-K`` with
``checkpoint.safetensors``, ``model.safetensors`` and ``result.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hgde.data import Dataset
from hgde.data.store import load_dataset, save_dataset
from hgde.files import WriteError, read_problem, write_atomically
from hgde.graph import Graph
from hgde.pipeline.problems import load_problem, save_problem
from hgde.pipeline.settings import Settings, refuse_code, restore_settings
from hgde.registry import untrusted
from hgde.sections import SettingsError
from hgde.tasks import Problem, Task

FORMAT = 2
_LARGEST_JSON = 256 << 20
_START = ("settings.json", "run.json", "data.safetensors", "problem.safetensors")


class RunError(RuntimeError):
    """A run folder that cannot be used; the message says what to do.

    >>> from hgde.pipeline import load
    >>> load("no-such-folder")
    Traceback (most recent call last):
    hgde.pipeline.folder.RunError: no-such-folder is not the folder of a run (no settings.json in it); ...
    """


@dataclass(frozen=True)
class RunFolder:
    """A run on disk.

    >>> from pathlib import Path
    >>> folder = RunFolder(Path("runs/cora-nodes"))
    >>> folder.exists, folder.seed_folder(3).name
    (False, 'seed-3')
    """

    path: Path

    @property
    def exists(self) -> bool:
        return (self.path / "settings.json").exists()

    def seed_folder(self, seed: int) -> Path:
        return self.path / f"seed-{seed}"

    def file(self, name: str) -> Path:
        """A file of the folder, to be read: one of its own, and an ordinary one."""
        path = self.path / name
        try:
            problem = read_problem(path, own=self.path)
        except OSError:
            return path  # whoever reads it will say so
        if problem is not None:
            raise RunError(f"{path} cannot be used: {problem}")
        return path

    def check_links(self) -> None:
        """Refuse to write into a folder in which links lead elsewhere."""
        names = (".lock", "report", *_START, "summary.json", *(f"seed-{seed}" for seed in self.seeds()))
        for path in (self.path / name for name in names):
            if path.is_symlink():
                raise RunError(f"{path} is a link, and a run folder holds its files itself; remove the link")

    def seeds(self) -> list[int]:
        """Seeds that have a folder, in order; anything else that is called so is not looked at."""
        names = (re.fullmatch(r"seed-(\d{1,19})", place.name) for place in self.path.glob("seed-*"))
        return sorted(int(name[1]) for name in names if name)

    def finished_seeds(self) -> list[int]:
        return [seed for seed in self.seeds() if (self.seed_folder(seed) / "model.safetensors").exists()]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process alone; a second one is refused at once."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.check_links()  # a lock, too, is written to
            lock.acquire()
        except Timeout:
            raise RunError(
                f"another process is working on {self.path}; wait for it to end, or choose another folder (--out)"
            ) from None
        except OSError as error:
            raise RunError(f"cannot use {self.path} for a run: {error.strerror}") from None
        try:
            self._sweep()
            yield
        finally:
            lock.release()

    @contextmanager
    def saying_what_is_kept(self) -> Iterator[None]:
        """A write that fails inside ends in words on what is left of the run, and on how to go on."""
        try:
            yield
        except WriteError as error:
            kept = f"everything so far is kept; then resume with hgde train --resume {self.path}"
            words = kept if self.exists else "nothing was saved; then train again"
            raise WriteError(f"{error}. Make room, or choose another disk: {words}") from error

    def discard(self) -> None:
        """Remove what :meth:`start` has written, and the folder if nothing else is in it."""
        for name in (*_START, ".lock", "choice.json"):
            (self.path / name).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def _sweep(self) -> None:
        """Remove what a process that was killed while writing has left."""
        for left in [*self.path.glob(".*.part"), *self.path.glob("seed-*/.*.part")]:
            left.unlink(missing_ok=True)

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        write_atomically(self.path / name, (json.dumps(content, indent=2) + "\n").encode())

    def read(self, name: str) -> dict[str, Any]:
        """A JSON file of the folder, which must hold an object."""
        path = self.path / name
        try:
            problem = read_problem(path, own=self.path, most=_LARGEST_JSON)
            if problem is not None:
                raise RunError(f"{path} is damaged: {problem}")
            content = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(
                f"{self.path} is not the folder of a run (no {name} in it); train one with `hgde train`"
            ) from None
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise RunError(f"{path} is damaged: {str(error)[:200]}") from None
        if not isinstance(content, dict):
            raise RunError(f"{path} is damaged: expected an object, got {type(content).__name__}")
        return content

    def settings(self) -> Settings:
        """The settings of the run. They may name what is installed, but load no code that is not."""
        stored = self.read("settings.json")
        if stored.get("format") != FORMAT:
            raise RunError(
                f"{self.path} was written in format {stored.get('format', 1)!r}, this version reads {FORMAT}; train it "
                "anew, or read it with the version of hgde that wrote it"
            )
        values, given = stored.get("settings"), stored.get("given")
        if not isinstance(values, dict) or not isinstance(given, dict):
            missing = "given" if isinstance(values, dict) else "settings"
            raise RunError(f"{self.path / 'settings.json'} is damaged: it has no object {missing!r}")
        try:
            with untrusted():
                settings = restore_settings(values, given)
                refuse_code(settings)
                return settings
        except SettingsError as error:
            raise RunError(f"{self.path / 'settings.json'}: {error}") from None

    def write_settings(self, settings: Settings) -> None:
        self.write("settings.json", {"format": FORMAT, "settings": settings.to_dict(), "given": settings.given})

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says of the data and its split."""
        facts = self.read("run.json")
        for name in ("data_hash", "split_hash"):
            if not isinstance(facts.get(name), str):
                raise RunError(f"{self.path / 'run.json'} is damaged: it has no text {name!r}")
        versions = facts.get("versions")
        if not isinstance(versions, dict) or not all(isinstance(value, str) for value in versions.values()):
            raise RunError(f"{self.path / 'run.json'} is damaged: its 'versions' are not texts by name")
        return facts

    def data(self) -> Dataset:
        """The data set the run was made with, from its own copy."""
        path = self.file("data.safetensors")
        dataset = load_dataset(path)
        if dataset.hash != self.facts()["data_hash"]:
            raise RunError(f"{path} is not the data that the run was started with")
        return dataset

    def problem(self, task: Task, graph: Graph) -> Problem:
        """The problem the run was made with, as far as predicting and scoring need it; ``graph`` is the data set's."""
        return load_problem(self.file("problem.safetensors"), task, graph)

    def start(self, settings: Settings, dataset: Dataset, problem: Problem, facts: Mapping[str, Any]) -> None:
        """Write what a run is known by; the settings last, since a folder that has them is a run."""
        save_dataset(self.path / "data.safetensors", dataset)
        save_problem(self.path / "problem.safetensors", problem, dataset.graph)
        self.write("run.json", facts)
        self.write_settings(settings)
