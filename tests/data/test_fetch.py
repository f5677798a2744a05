"""Downloads against a real server that drops connections, ignores ranges, or serves the wrong bytes."""

import hashlib
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from data_server import Behaviour, serve

from hgde.data.errors import DataError
from hgde.data.fetch import cache_folder, verify
from hgde.data.fetch import fetch as fetch_with_pauses
from hgde.data.spec import RemoteFile

CONTENT = np.random.RandomState(0).bytes(300_000)
fetch = partial(fetch_with_pauses, pause=0.001)


def remote(behaviour: Behaviour, content: bytes = CONTENT, path: str = "/file.bin") -> RemoteFile:
    return RemoteFile(behaviour.address + path, len(content), hashlib.sha256(content).hexdigest(), "file.bin")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("hgde.data.fetch.SCHEMES", ("http",))
    with serve(Behaviour({"/file.bin": CONTENT})) as behaviour:
        yield behaviour


def left_over(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_download_reports_progress_and_leaves_one_file(server, tmp_path):
    seen = []
    path = fetch(remote(server), tmp_path, progress=lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT
    assert left_over(tmp_path) == ["file.bin"]
    assert seen[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_good_copy_is_used_without_asking(server, tmp_path):
    fetch(remote(server), tmp_path)
    fetch(remote(server), tmp_path)
    assert len(server.requests) == 1


def test_broken_connections_are_resumed_where_they_stopped(server, tmp_path):
    server.drops, server.drop_after = 4, 50_000
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT
    starts = [asked for _, asked in server.requests]
    assert starts == [None, *(f"bytes={50_000 * n}-" for n in range(1, 5))]
    assert server.sent == len(CONTENT)


def test_a_server_without_ranges_is_read_from_the_start(server, tmp_path):
    server.drops, server.drop_after, server.ranges = 1, 50_000, False
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT


def test_a_part_left_by_a_killed_process_is_continued(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:123_456])
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT
    assert server.requests == [("/file.bin", "bytes=123456-")]


def test_a_complete_part_is_not_fetched_again(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT
    assert server.sent == 0


def test_a_part_longer_than_the_file_is_started_over(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT + b"more")
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT


def test_a_corrupt_part_is_refused_once_and_right_the_next_time(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    with pytest.raises(DataError, match="wrong SHA-256"):
        fetch(remote(server), tmp_path)
    assert left_over(tmp_path) == []
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"!", lambda b: b"?" + b[1:]])
def test_wrong_bytes_are_refused_and_what_was_there_is_kept(server, tmp_path, damage):
    server.content["/file.bin"] = damage(CONTENT)
    (tmp_path / "file.bin").write_bytes(b"an older version")
    with pytest.raises(DataError, match=r"not file\.bin as registered.*is unchanged"):
        fetch(remote(server), tmp_path)
    assert (tmp_path / "file.bin").read_bytes() == b"an older version"
    assert left_over(tmp_path) == ["file.bin"]


def test_a_damaged_copy_in_the_cache_is_replaced(server, tmp_path):
    (tmp_path / "file.bin").write_bytes(CONTENT[:-5])
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT


def test_passing_failures_are_waited_out_and_lasting_ones_reported(server, tmp_path):
    server.failures = [503, 500, 429]
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT
    with pytest.raises(DataError, match="404"):
        fetch(remote(server, path="/other"), tmp_path / "elsewhere")
    server.failures = [503] * 50
    with pytest.raises(DataError, match="HTTP 503"):
        fetch(remote(server), tmp_path / "again")
    assert len(server.failures) >= 40


def test_a_connection_that_always_breaks_off_ends_with_words(server, tmp_path):
    server.drops, server.drop_after = 10_000, 0
    with pytest.raises(DataError, match="could not be fetched"):
        fetch(remote(server), tmp_path)


def test_nobody_listening_and_no_such_host(tmp_path):
    digest = "0" * 64
    with pytest.raises(DataError, match="could not be fetched"):
        fetch(RemoteFile("https://127.0.0.1:9/x", 1, digest, "x"), tmp_path)
    with pytest.raises(DataError, match="offline"):
        fetch(RemoteFile("https://no-such-host.invalid/x", 1, digest, "x"), tmp_path)


@pytest.mark.parametrize("address", ["http://host/x", "ftp://host/x", "HTTP://host/x", "data:,x", "/etc/hostname"])
def test_nothing_but_https_and_files_is_fetched(address, tmp_path):
    with pytest.raises(DataError, match="is not an https or file address"):
        fetch(RemoteFile(address, 1, "0" * 64, "x"), tmp_path)


def test_a_redirect_to_an_address_that_would_be_refused_is_refused(server, tmp_path, monkeypatch):
    server.redirects["/moved"] = "ftp://elsewhere/file.bin"
    with pytest.raises(DataError, match="is not an http address"):
        fetch(remote(server, path="/moved"), tmp_path)
    server.redirects["/moved"] = f"{server.address}/file.bin"
    assert fetch(remote(server, path="/moved"), tmp_path).read_bytes() == CONTENT


def test_a_file_on_this_machine(tmp_path):
    source = tmp_path / "mirror" / "file.bin"
    source.parent.mkdir()
    source.write_bytes(CONTENT)
    file = RemoteFile(source.as_uri(), len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "file.bin")
    assert fetch(file, tmp_path / "cache").read_bytes() == CONTENT
    source.write_bytes(CONTENT[:-1])
    with pytest.raises(DataError, match="wrong SHA-256"):
        fetch(file, tmp_path / "again")


def test_verify_says_both_hashes(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"something else")
    with pytest.raises(DataError, match=r"SHA-256 [0-9a-f]{16}.*expected " + "0" * 16):
        verify(path, RemoteFile("http://x/y", 3, "0" * 64, "file.bin"))


def test_the_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HGDE_CACHE", str(tmp_path / "a"))
    assert cache_folder() == tmp_path / "a"
    monkeypatch.delenv("HGDE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert cache_folder() == tmp_path / "b" / "hgde" / "data"


def test_two_processes_fetch_once_between_them(server, tmp_path):
    server.delay = 0.005
    file = remote(server)
    script = (
        "import os; from pathlib import Path\n"
        "from hgde.data import fetch as module; from hgde.data.spec import RemoteFile\n"
        "module.SCHEMES = ('http',)\n"
        f"file = RemoteFile({file.address!r}, {file.size}, {file.sha256!r}, {file.name!r})\n"
        "other = os.fork()\n"  # both begin at once, and the imports are paid for once
        f"module.fetch(file, Path({str(tmp_path)!r}))\n"
        "os.write(1, b'fetched\\n')\n"  # in one piece: print may write the end of the line by itself
        "assert other == 0 or os.waitpid(other, 0)[1] == 0"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["fetched", "fetched"]
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert left_over(tmp_path) == ["file.bin"]
    assert server.sent == len(CONTENT)
