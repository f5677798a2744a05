"""Files: written in one step, so that a crash leaves the old one or the new one; looked at before they are read.

Also where the package keeps what it has worked out (:func:`cache_folder`).
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

_LEFT_BEHIND = 3600.0


class WriteError(RuntimeError):
    """A file that could not be written; the message says why and whether an earlier one is intact."""


def read_problem(path: Path, *, own: Path | None = None, most: int | None = None) -> str | None:
    """Why a file must not be read, in words; ``None`` if it may be. Nothing is opened.

    A pipe without a writer would hang, a device never ends, a file larger than memory ends the process. ``own`` is a
    folder that may come from elsewhere: a link inside it could lead to any file of the reader, and is refused. ``most``
    is the largest size in bytes; the machine's memory by default.
    """
    if own is not None:
        for place in (path, *path.parents):
            if place == own:
                break
            if place.is_symlink():
                return f"{place.name} is a link, and a run folder holds its files itself"
    state = path.stat()
    if stat.S_ISDIR(state.st_mode):
        return "it is a folder"
    if not stat.S_ISREG(state.st_mode):
        return "it is not a regular file"
    limit = physical_memory() if most is None else most
    if state.st_size > limit:
        return f"it is larger than {limit >> 20:,} MiB"
    return None


@cache
def physical_memory() -> int:
    """Bytes of memory of this machine; 64 GiB where it cannot be asked."""
    try:
        return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 64 << 30


def cache_folder() -> Path:
    """Where results are kept: ``$HGDE_CACHE``, else ``hgde`` in the user's cache folder.

    A user without a home, as in many containers, has one in the folder of temporary files that is theirs alone.
    """
    named = os.environ.get("HGDE_CACHE")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base).expanduser() / "hgde"
    try:
        home = Path.home()
    except RuntimeError:  # neither HOME nor an entry for the user
        home = Path("/")
    if home != Path("/"):
        return home / ".cache" / "hgde"
    return Path(tempfile.gettempdir()) / f"hgde-{_user()}"


def is_private(path: Path) -> bool:
    """Whether no other user could have written a file: it is ours or root's, and neither group nor others may write.

    What is executed, such as a compiled kernel, is read from such files and folders only.
    """
    if not hasattr(os, "getuid"):
        return True  # Windows: the user's own profile
    try:
        places = [os.lstat(place) for place in (path, path.parent)]
    except OSError:
        return False
    return all(s.st_uid in (os.getuid(), 0) and not s.st_mode & 0o022 for s in places)


def private_folder(base: Path, name: str) -> Path:
    """The folder ``name`` in ``base`` for what this user may execute; where another user has it, one of our own."""
    taken = base / name
    try:
        is_ours = not hasattr(os, "getuid") or os.lstat(taken).st_uid in (os.getuid(), 0)
    except OSError:
        is_ours = True  # not there yet
    return taken if is_ours else base / f"{name}-{_user()}"


def make_private(folder: Path) -> None:
    """Make a folder, and the one above it, that only this user may write to; refuse one that others could."""
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for place in (folder.parent, folder):
        place.mkdir(mode=0o700, exist_ok=True)
        if hasattr(os, "getuid") and place.stat().st_uid == os.getuid() and place.stat().st_mode & 0o022:
            place.chmod(place.stat().st_mode & ~0o022)  # made under a lax umask
    if not is_private(folder):
        raise PermissionError(f"{folder} can be written to by other users")


def sweep(folder: Path, pattern: str, older_than: float = _LEFT_BEHIND) -> None:
    """Remove temporary files that processes killed while writing have left; fresh ones may be in use."""
    with suppress(OSError):
        for left in folder.glob(pattern):
            with suppress(OSError):
                if time.time() - left.lstat().st_mtime > older_than:
                    left.unlink()


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def write_atomically(path: Path, payload: bytes) -> None:
    """Write to a temporary file beside ``path``, flushed to disk, then rename it over ``path``.

    Folders are made as needed, and permissions are those of any new file. A process that is killed while writing leaves
    a file ``.NAME.RANDOM.part``.

    Raises:
        WriteError: if the folder or the disk does not allow it.
    """
    # Not tempfile: its files are for the owner's eyes only, and this one becomes a result to be shared.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = temporary.open("xb")
    except OSError as error:
        raise WriteError(f"cannot write to {path.parent}: {error.strerror}") from error
    try:
        with stream:
            stream.write(payload)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        kept = "the previous one is intact" if path.exists() else "there is no earlier one"
        raise WriteError(f"could not write {path}: {error.strerror}; {kept}") from error
