"""Records on disk: one JSON file per cell, written atomically after every finished job.

A file holds ``records`` by key. What many records share (resolved settings, versions) stands once in the file, under
its hash, and the records name the hash.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hgde.experiments.jobs import Done, Job
from hgde.files import write_atomically
from hgde.registry import untrusted
from hgde.sections import SettingsError

FORMAT = 1
_SHARED = ("settings", "versions")


class StoreError(RuntimeError):
    """A file of records that cannot be used; the message says what to do."""


class Store:
    """A folder of cells. Only one process writes to it: the one that hands out the jobs."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._cells: dict[str, dict[str, Any]] = {}
        self._resolved: dict[str, dict[str, Any]] = {}
        self._lock: Any = None
        self._by_turns = threading.RLock()  # threads of one process add to the same cell

    def hold(self) -> None:
        """Keep other processes from writing to the folder for as long as this one lives; sweep what a killed one left.

        Raises:
            StoreError: if another process holds it.
        """
        with self._by_turns:
            if self._lock is None:
                self._take()

    def _take(self) -> None:
        from filelock import FileLock, Timeout

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".lock", timeout=0, is_singleton=True, thread_local=False)
            lock.acquire()
        except Timeout:
            raise StoreError(
                f"another process is working in {self.folder}; wait for it to end, or choose another folder (--out)"
            ) from None
        except OSError:
            return  # nothing can be written there, and whoever writes will say so
        self._lock = lock
        for left in self.folder.rglob(".*.part"):
            left.unlink(missing_ok=True)

    def path(self, cell: str) -> Path:
        return self.folder / f"{cell}.json"

    def content(self, cell: str) -> dict[str, Any]:
        """The file of a cell; an empty one if there is none."""
        with self._by_turns:
            return self._content(cell)

    def _content(self, cell: str) -> dict[str, Any]:
        if cell not in self._cells:
            path = self.path(cell)
            content: Any = {"format": FORMAT, "about": {}, "records": {}, **{name: {} for name in _SHARED}}
            if path.exists():
                try:
                    content = json.loads(path.read_text(encoding="utf-8"))
                except (ValueError, RecursionError) as error:
                    raise StoreError(f"{path} is damaged ({error}); remove it and run the same command again") from None
                if not isinstance(content, dict) or content.get("format") != FORMAT:
                    raise StoreError(f"{path} was written by another version; remove it or use another folder")
                wrong = _problem(content)
                if wrong is not None:
                    raise StoreError(f"{path} is damaged ({wrong}); remove it and run the same command again")
            self._cells[cell] = content
        return self._cells[cell]

    def cells(self, under: str = "") -> list[str]:
        """Names of the cells on disk, in order."""
        places = sorted((self.folder / under).rglob("*.json")) if (self.folder / under).is_dir() else []
        return [str(place.relative_to(self.folder).with_suffix("")) for place in places]

    def describe(self, cell: str, about: Mapping[str, Any]) -> None:
        """Keep, in the cell's file, what it is about."""
        content = self.content(cell)
        if content["about"] != dict(about):
            content["about"] = dict(about)
            if content["records"]:
                self._write(cell)

    def find(self, job: Job) -> Done | None:
        """The stored outcome of the very same job, ``None`` if there is none."""
        content = self.content(job.cell)
        record = content["records"].get(job.key)
        if record is None or record["work"] != job.work or record["more"] != _plain(job.more):
            return None
        stored = content["settings"].get(record["settings"], {})
        if self._normal(stored) != self._normal(_shared_settings(job.settings)) or record["place"] != _place(job):
            return None
        return Done(job, record.get("result"), record.get("failure"), record["seconds"], was_stored=True)

    def add(self, done: Done) -> None:
        with self._by_turns:
            self._add(done)

    def _add(self, done: Done) -> None:
        job = done.job
        content = self.content(job.cell)
        record: dict[str, Any] = {
            "work": job.work,
            "place": _place(job),
            "more": _plain(job.more),
            "settings": _keep(content["settings"], self._normal(_shared_settings(job.settings))),
            "seconds": round(done.seconds, 3),
        }
        if done.result is not None:
            result = dict(done.result)
            if "versions" in result:
                record["versions"] = _keep(content["versions"], result.pop("versions"))
            record["result"] = result
        else:
            record["failure"] = done.failure
        content["records"][job.key] = record
        content["records"] = dict(sorted(content["records"].items()))
        self._forget_unused(content)
        self._write(job.cell)

    def records(self, cell: str) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from self.content(cell)["records"].items()

    def _write(self, cell: str) -> None:
        payload = json.dumps(self.content(cell), indent=1, allow_nan=True) + "\n"
        write_atomically(self.path(cell), payload.encode())

    def _normal(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """All settings with their defaults, so that a setting added since counts as its default."""
        from hgde.pipeline.settings import make_settings

        key = _hash(settings)
        if key not in self._resolved:
            try:
                with untrusted():  # the folder may come from elsewhere
                    self._resolved[key] = _shared_settings(make_settings(settings, lenient=True).to_dict())
            except SettingsError:  # of a model that is gone, or wrong from the start: compared as they are
                self._resolved[key] = dict(settings)
        return self._resolved[key]

    @staticmethod
    def _forget_unused(content: dict[str, Any]) -> None:
        for name in _SHARED:
            used = {record.get(name) for record in content["records"].values()}
            content[name] = {key: value for key, value in content[name].items() if key in used}


def _problem(content: Mapping[str, Any]) -> str | None:
    """What is wrong with the content of a cell, in words."""
    for name in ("about", "records", *_SHARED):
        if not isinstance(content.get(name), dict):
            return f"it has no object {name!r}"
    for name in _SHARED:
        if not all(isinstance(value, dict) for value in content[name].values()):
            return f"{name!r} holds something that is no object"
    fields = {"work": str, "place": dict, "more": dict, "settings": str, "seconds": int | float}
    for key, record in content["records"].items():
        if not isinstance(record, dict):
            return f"record {key!r} is no object"
        wrong = next((name for name, kind in fields.items() if not isinstance(record.get(name), kind)), None)
        if wrong is None and not isinstance(record.get("result", record.get("failure")), dict | str):
            wrong = "result"
        if wrong is not None:
            return f"record {key!r} has no proper {wrong!r}"
    return None


def _place(job: Job) -> dict[str, Any]:
    """What differs between the runs of a cell: split and seed."""
    data, run = job.settings.get("data", {}), job.settings.get("run", {})
    return {"split": data.get("split", 0), "seed": run.get("seed", 0)}


def _shared_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without split and seed, and without what does not change results."""
    kept = {name: dict(value) if isinstance(value, Mapping) else value for name, value in settings.items()}
    for section, names in (("data", ("split", "root")), ("run", ("seed", "seeds", "threads", "checkpoint_every"))):
        if section in kept:
            kept[section] = {name: value for name, value in kept[section].items() if name not in names}
    return kept


def _keep(shared: dict[str, Any], value: Any) -> str:
    key = _hash(value)
    shared[key] = value
    return key


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
