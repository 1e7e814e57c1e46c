"""Damaged, foreign and hostile files are refused with one error."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from tests.persistence.shared import members, same, write_members

from mnpca.persistence import ModelFileError, read_document, write_document
from mnpca.persistence import _archive as archive_module


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.mnpca"
    write_document(path, "model", "1", {"x": np.arange(5.0), "s": sp.eye_array(3, format="csr")})
    return path


def test_every_truncation_is_refused(good):
    data = good.read_bytes()
    for length in range(0, len(data), 7):
        good.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            read_document(good, "model")


def test_a_changed_byte_is_refused_or_harmless(good):
    """A byte that is not covered by a checksum (a timestamp) may change; no value ever does."""
    data, content = good.read_bytes(), read_document(good, "model")
    refused = 0
    for position in range(0, len(data), 5):
        altered = bytearray(data)
        altered[position] ^= 0x11
        good.write_bytes(altered)
        try:
            assert same(read_document(good, "model"), content)
        except ModelFileError:
            refused += 1
    assert refused > len(data) / 5 / 2


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/x", "arrays/../../x.npy", "arrays/1.npy/..", "x"]
)
def test_foreign_member_names_are_refused(good, name):
    write_members(good, members(good) | {name: b"x"})
    with pytest.raises(ModelFileError, match="foreign member"):
        read_document(good, "model")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(good):
    bomb = io.BytesIO()
    np.save(bomb, np.zeros(10**6))
    write_members(good, members(good) | {"arrays/0.npy": bomb.getvalue()}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="compressed"):
        read_document(good, "model")


def test_too_many_members_are_refused(good, monkeypatch):
    monkeypatch.setattr(archive_module, "MEMBER_LIMIT", 3)
    with pytest.raises(ModelFileError, match="members, more than 3"):
        read_document(good, "model")


def test_overlapping_members_are_refused(good):
    """Two directory entries for the same bytes claim more than the file has."""
    with zipfile.ZipFile(good) as archive:
        first = archive.getinfo("arrays/0.npy")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in members(good).items():
            archive.writestr(name, content)
        for number in range(10, 60):
            copy = zipfile.ZipInfo(f"arrays/{number}.npy")
            copy.file_size = copy.compress_size = first.file_size
            copy.CRC = first.CRC
            copy.header_offset = archive.getinfo("arrays/0.npy").header_offset
            archive.filelist.append(copy)
    good.write_bytes(data.getvalue())
    with pytest.raises(ModelFileError, match="more bytes than the file"):
        read_document(good, "model")


class Payload:
    def __reduce__(self):
        return os.mkdir, ("escaped",)


def test_a_pickled_array_is_not_unpickled(good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = io.BytesIO()
    np.save(data, np.array([Payload()], dtype=object), allow_pickle=True)
    write_members(good, members(good) | {"arrays/0.npy": data.getvalue()})
    with pytest.raises(ModelFileError, match="type object"):
        read_document(good, "model")
    good.write_bytes(pickle.dumps(Payload()))
    with pytest.raises(ModelFileError, match="not an mnpca file"):
        read_document(good, "model")
    assert not (tmp_path / "escaped").exists()


def test_an_array_that_claims_more_than_it_has_is_refused(good):
    array = members(good)["arrays/0.npy"]
    huge = array.replace(b"(5,), }          ", b"(99999999999,), }")
    assert b"99999999999" in huge
    for altered in (array[:-8], array + bytes(8), huge):
        write_members(good, members(good) | {"arrays/0.npy": altered})
        with pytest.raises(ModelFileError):
            read_document(good, "model")


def test_sparse_indices_out_of_range_are_refused(tmp_path):
    path = tmp_path / "file.mnpca"
    matrix = sp.csr_array(np.eye(3))
    matrix.indices[1] = 1000
    write_document(path, "model", "1", {"m": matrix})
    with pytest.raises(ModelFileError):
        read_document(path, "model")


@pytest.mark.parametrize("position", [-1, 625, 10**9])
def test_a_random_state_that_points_outside_its_key_is_refused(tmp_path, position):
    path = tmp_path / "file.mnpca"
    write_document(path, "model", "1", {"r": np.random.RandomState(0)})
    document = members(path)["document.json"]
    assert b'"pos",\n' in document.replace(b" ", b"")
    tree = json.loads(document)
    state = dict(tree["content"]["items"][0][1]["state"]["items"])
    next(item for item in state["state"]["items"] if item[0] == "pos")[1] = position
    write_members(path, members(path) | {"document.json": json.dumps(tree).encode()})
    with pytest.raises(ModelFileError, match="position"):
        read_document(path, "model")


def rewrite(path, **changes):
    document = json.loads(members(path)["document.json"]) | changes
    write_members(path, members(path) | {"document.json": json.dumps(document).encode()})


def test_a_later_schema_says_upgrade(good):
    rewrite(good, schema=archive_module.SCHEMA + 1, version="9.0")
    with pytest.raises(ModelFileError, match=r"later version \(mnpca 9.0.*Upgrade"):
        read_document(good, "model")


@pytest.mark.parametrize(
    "changes", [{"schema": 0}, {"schema": "1"}, {"schema": None}, {"format": "x"}]
)
def test_a_document_of_another_program_is_refused(good, changes):
    rewrite(good, **changes)
    with pytest.raises(ModelFileError):
        read_document(good, "model")


def test_another_kind_is_refused(good):
    with pytest.raises(ModelFileError, match="'model' file, not a 'checkpoint'"):
        read_document(good, "checkpoint")


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{}", b"[]", b"1" * 10_000, b"\xff\xfe", b""])
def test_a_document_that_is_no_document_is_refused(good, text):
    write_members(good, members(good) | {"document.json": text})
    with pytest.raises(ModelFileError):
        read_document(good, "model")


def test_full_memory_is_no_damage(good, monkeypatch):
    def full(member, size):
        raise MemoryError

    monkeypatch.setattr(archive_module, "_read_array", full)
    with pytest.raises(MemoryError):
        read_document(good, "model")


def test_missing_files_folders_and_pipes(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_document(tmp_path / "none", "model")
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_document(tmp_path, "model")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not a regular file"):
            read_document(tmp_path / "pipe", "model")
