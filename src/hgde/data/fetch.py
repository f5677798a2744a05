"""Getting a file whole: resumed downloads, checked, moved into place in one step, one process at a time."""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from hgde import files
from hgde.data.errors import DataError
from hgde.data.spec import RemoteFile

Progress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes that are there, and the bytes there will be (0 if unknown)."""

SCHEMES = ("https", "file")
"""What an address may start with: nothing that someone on the way could change."""

_BLOCK = 1 << 16
_TRIES = 6
_LARGEST_RESPONSE = 1 << 31


def cache_folder() -> Path:
    """Where downloads are kept: ``HGDE_CACHE``, else the user's cache folder."""
    folder = files.cache_folder()
    return folder if os.environ.get("HGDE_CACHE") else folder / "data"


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def verify(path: Path, file: RemoteFile) -> None:
    """Refuse a file whose SHA-256 is not the registered one."""
    actual = sha256_of(path)
    if actual != file.sha256:
        raise DataError.at(
            path,
            f"is not the file that belongs here: SHA-256 {actual[:16]}..., expected {file.sha256[:16]}... "
            f"({path.stat().st_size} bytes, expected {file.size}). Delete it, or get it again from {file.address}",
        )


def fetch(
    file: RemoteFile, folder: Path, *, progress: Progress | None = None, timeout: float = 30.0, pause: float = 0.5
) -> Path:
    """The file in ``folder``, downloaded if it is not there yet or not whole.

    A download goes to ``NAME.part`` and is continued where it stopped (HTTP Range), also by a later process; only
    when its SHA-256 is right does it take its place, in one rename. A lock lets one process download while others
    wait for the result. A good copy is never touched.

    Raises:
        DataError: when the address cannot be reached, keeps breaking off, or serves other bytes.
    """
    target = folder / file.name
    with locked(target):
        if target.is_file() and sha256_of(target) == file.sha256:
            return target
        part = target.with_name(f"{target.name}.part")
        _download(file, part, progress=progress, timeout=timeout, pause=pause)
        install(part, target, file)
    return target


def install(part: Path, target: Path, file: RemoteFile) -> None:
    """Check a finished download and move it into place; wrong bytes are removed and the target kept."""
    try:
        verify(part, file)
    except DataError as error:
        size = part.stat().st_size
        part.unlink()
        raise DataError(
            f"{file.address} served {size} bytes that are not {file.name} as registered (wrong SHA-256); they were "
            f"discarded and {target} is unchanged"
        ) from error
    with part.open("rb+") as stream:
        os.fsync(stream.fileno())
    os.replace(part, target)


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the lock beside ``target``; it goes with the process that holds it, however that ends."""
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        yield


def _download(file: RemoteFile, part: Path, *, progress: Progress | None, timeout: float, pause: float) -> None:
    _check_scheme(file.address, file.name)
    reason = ""
    idle_tries = 0
    while idle_tries < _TRIES:
        before = part.stat().st_size if part.exists() else 0
        try:
            if _continue(file, part, before, progress, timeout):
                return
            reason = "the connection was lost"
        except urllib.error.HTTPError as error:
            if error.code == 416:
                # Nothing lies beyond what is here: either it is complete, or it is not a prefix of the file.
                if sha256_of(part) == file.sha256:
                    return
                part.unlink()
            elif error.code < 500 and error.code != 429:
                raise DataError(f"{file.name}: {file.address} answered {error.code} {error.reason}") from None
            reason = f"HTTP {error.code}"
        except (OSError, http.client.HTTPException) as error:
            if isinstance(getattr(error, "reason", error), socket.gaierror):
                raise DataError(f"{file.name}: cannot reach {file.address} (offline?)") from None
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        progressed = part.exists() and part.stat().st_size > before
        idle_tries = 0 if progressed else idle_tries + 1
        if idle_tries:
            time.sleep(min(pause * 2 ** (idle_tries - 1), 8.0))
    raise DataError(f"{file.name}: could not be fetched from {file.address} ({reason})")


def _check_scheme(address: str, name: str) -> None:
    scheme = address.partition(":")[0].lower()
    if scheme not in SCHEMES:
        raise DataError(f"{name}: {address} is not an {' or '.join(SCHEMES)} address, and nothing else is fetched")


class _CheckedRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to an address that might have been asked for in the first place."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _check_scheme(newurl, f"redirected from {req.full_url}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _continue(file: RemoteFile, part: Path, start: int, progress: Progress | None, timeout: float) -> bool:
    """Fetch the rest of the file; true when the server says there is no more."""
    request = urllib.request.Request(file.address, headers={"User-Agent": "hgde"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urllib.request.build_opener(_CheckedRedirects).open(request, timeout=timeout) as response:
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if start and not resumed:
            start = 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length is not None else file.size
        with part.open("ab" if resumed else "wb") as stream:
            return _copy(response, stream, start, total, length is not None, file, progress)


def _copy(
    response: BinaryIO, stream: BinaryIO, done: int, total: int, sure: bool, file: RemoteFile, progress: Progress | None
) -> bool:
    while block := response.read(_BLOCK):
        stream.write(block)
        done += len(block)
        if done > _LARGEST_RESPONSE:
            raise DataError(f"{file.name}: {file.address} does not stop sending")
        if progress is not None:
            progress(file.name, done, total)
    return done >= total if sure else True
