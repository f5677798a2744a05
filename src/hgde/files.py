"""Files that take their place in one step: a crash leaves the old one or the new one, a reader never sees half."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


class WriteError(RuntimeError):
    """A file that could not be written; the message says why and whether an earlier one is intact."""


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
