"""Files that take their place in one step."""

import os

import pytest

from hgde.files import WriteError, write_atomically


def test_a_failed_write_keeps_the_old_file_and_says_so(tmp_path, monkeypatch):
    path = tmp_path / "file"

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="No space left on device; there is no earlier one"):
        write_atomically(path, b"first")
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    write_atomically(path, b"first")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match="the previous one is intact"):
        write_atomically(path, b"second")
    assert path.read_bytes() == b"first"
    assert len(list(tmp_path.iterdir())) == 1

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"third")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_files_are_flushed_before_they_take_the_old_ones_place(tmp_path, monkeypatch):
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append(os.fstat(handle).st_size), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (order.append("replace"), replace(*names)))
    write_atomically(tmp_path / "file", b"12345")
    assert order == [5, "replace"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(WriteError, match=r"cannot write to .*taken"):
        write_atomically(tmp_path / "taken" / "file", b"")
