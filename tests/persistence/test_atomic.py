"""Files are written whole or not at all."""

import errno
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mnpca.persistence import atomic_write, read_document, remove_leftovers, write_document


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as file:
        file.write(b"new %d" % (1 // 0))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_new_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("sync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("rename"), replace(a, b)))
    with atomic_write(tmp_path / "file") as file:
        file.write(b"new")
    assert calls[:2] == ["sync", "rename"]
    if os.name == "posix":
        assert calls[2:] == ["sync"]


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes are of POSIX")
def test_links_are_followed_and_the_mode_is_that_of_a_new_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "plain").write_bytes(b"")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("real", "plain")}
    assert len(modes) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="links and modes are of POSIX")
def test_what_others_may_not_read_stays_so(tmp_path):
    path = tmp_path / "private"
    path.touch(mode=0o600)
    with atomic_write(path) as file:
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are of POSIX")
def test_only_files_are_replaced(tmp_path):
    """Not a folder, and not a device such as /dev/null."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(FileExistsError, match="name a file"), atomic_write(tmp_path / name):
            pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"), atomic_write(tmp_path / "a/b"):
        pass


def test_leftovers_of_killed_writers_are_removed_and_others_stay(tmp_path):
    for name in (".file.0a1b.part", ".file.ab.part", ".other.ab.part", "file", ".file.part"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == [".file.part", ".other.ab.part", "file"]


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.mnpca"
    write_document(path, "model", "1", {"x": 1})
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_document(path, "model", "1", {"x": 2})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file.mnpca"]


def test_a_reader_beside_two_writers_always_finds_a_whole_file(tmp_path):
    path = tmp_path / "file.mnpca"
    write_document(path, "model", "1", {"x": np.full(1000, 0)})

    def write(value):
        for _ in range(30):
            write_document(path, "model", "1", {"x": np.full(1000, value)})

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, value) for value in (1, 2)]
        while not all(writer.done() for writer in writers):
            assert len(set(read_document(path, "model")["x"])) == 1
        for writer in writers:
            writer.result()
    assert os.listdir(tmp_path) == ["file.mnpca"]
