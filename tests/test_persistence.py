"""The file format: what comes back, what is refused, and that nothing is half written."""

import errno
import io
import json
import os
import pickle
import stat
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.utils import Bunch

from mnpca.model.low_rank import LowRank
from mnpca.persistence import (
    ModelFileError,
    atomic_write,
    fingerprint,
    read_document,
    remove_leftovers,
    write_document,
)
from mnpca.persistence import _archive as archive_module


def same(a, b):
    """Equal in type and to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and a != a:
        return b != b  # which of the many not-a-numbers is no part of a value
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.kind == "O":
            return all(same(x, y) for x, y in zip(a.flat, b.flat, strict=True))
        return a.tobytes() == b.tobytes()
    if sp.issparse(a):
        parts = ("data", "indices", "indptr") if a.format in ("csr", "csc") else ("data",)
        return a.shape == b.shape and all(same(getattr(a, p), getattr(b, p)) for p in parts)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float | np.generic):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    return a == b


def round_trip(value, folder):
    path = folder / "file.mnpca"
    write_document(path, "model", "1", {"value": value})
    return read_document(path, "model")["value"]


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, named, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in named.items():
            archive.writestr(name, data)


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.mnpca"
    write_document(path, "model", "1", {"x": np.arange(5.0), "s": sp.eye_array(3, format="csr")})
    return path


VALUES = [
    None,
    True,
    -(10**30),
    0.1,
    -0.0,
    float("nan"),
    float("-inf"),
    "naïve \U0001f600 \0",
    [1, [2.5, None]],
    (1, (2,), "a"),
    {"a": 1, 2: (3,)},
    Bunch(x=1, y=np.ones(2)),
    LowRank(np.ones((3, 1)), np.zeros((2, 1))),
    np.float32(0.1),
    np.int64(-3),
    np.bool_(True),
    np.str_("a"),
    np.array(3.5),
    np.zeros((0, 4)),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(12).reshape(3, 4)[:, ::2],
    np.array(["a", "bc"]),
    np.array(["a", None, 1.5], dtype=object),
    np.array([1 + 2j], dtype=np.complex64),
    np.arange(3, dtype=">f4"),
    np.array(["2020-01-01"], dtype="M8[D]"),
    sp.csr_array(np.tri(5, 4, k=-1)),
    sp.csc_matrix(np.eye(3, dtype=np.float32)),
    sp.coo_array(np.eye(3)),
    sp.dia_array(np.eye(3)),
    sp.csr_array((0, 3)),
]


@pytest.mark.parametrize(
    "value", VALUES, ids=[f"{i}-{type(v).__name__}" for i, v in enumerate(VALUES)]
)
def test_values_come_back_to_the_bit(value, tmp_path):
    back = round_trip(value, tmp_path)
    assert same(value, back)
    assert fingerprint(value) == fingerprint(back)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)
arrays = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int32, np.bool_, np.complex128, np.uint8]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@settings(max_examples=60, deadline=None)
@given(value=json_values | arrays | st.lists(arrays, max_size=3))
def test_any_value_comes_back(tmp_path_factory, value):
    assert same(value, round_trip(value, tmp_path_factory.mktemp("values")))


@pytest.mark.parametrize(
    "make", [lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)]
)
def test_random_generators_go_on_where_they_were(make, tmp_path):
    generator = make()
    generator.normal(size=7)
    back = round_trip(generator, tmp_path)
    assert np.array_equal(generator.normal(size=9), back.normal(size=9))


def test_arrays_come_back_writable_and_in_their_order(tmp_path):
    back = round_trip(np.asfortranarray(np.ones((4, 3))), tmp_path)
    assert back.flags.writeable
    assert back.flags.f_contiguous


@pytest.mark.parametrize(
    "value",
    [print, object(), {1, 2}, np.array([object()]), np.ma.masked_array([1.0]), np.void(b"abc")],
    ids=lambda value: type(value).__name__,
)
def test_other_types_are_refused_by_name_and_nothing_is_written(value, tmp_path):
    with pytest.raises(TypeError, match=r"content\['value'\]"):
        round_trip(value, tmp_path)
    assert os.listdir(tmp_path) == []


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_document(tmp_path / name, "model", "1", {"x": np.arange(3)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(4), np.zeros(5)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(3), np.zeros(3, dtype=np.float32)),
        (1, 1.0),
        ((1,), [1]),
        ({"a": 1}, {"a": 2}),
        (np.arange(4.0), np.arange(4.0)[::-1]),
    ],
)
def test_fingerprints_differ(one, other):
    assert fingerprint(one) != fingerprint(other)


def test_fingerprint_ignores_memory_layout():
    matrix = np.arange(12.0).reshape(3, 4)
    assert fingerprint(matrix) == fingerprint(np.asfortranarray(matrix))
    assert fingerprint(matrix[:, ::2]) == fingerprint(matrix[:, ::2].copy())


# What is refused


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


def test_an_earlier_schema_is_brought_up_to_date(good, monkeypatch):
    def rename(document):
        items = [["renamed" if key == "x" else key, v] for key, v in document["content"]["items"]]
        return document | {"content": {"type": "dict", "items": items}}

    current = archive_module.SCHEMA
    monkeypatch.setattr(archive_module, "SCHEMA", current + 1)
    monkeypatch.setitem(archive_module.MIGRATIONS, current, rename)
    assert list(read_document(good, "model")) == ["renamed", "s"]


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{}", b"[]", b"1" * 10_000, b"\xff\xfe", b""])
def test_a_document_that_is_no_document_is_refused(good, text):
    write_members(good, members(good) | {"document.json": text})
    with pytest.raises(ModelFileError):
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


# Written whole or not at all


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
