"""Damaged files are refused with one error; `benchmarks/hostile_models.py` has the hostile ones."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from tests.persistence.shared import same

from mnpca.persistence import ModelFileError, read_document, write_document
from mnpca.persistence import read as reader


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


def test_full_memory_is_no_damage(good, monkeypatch):
    def full(member, size):
        raise MemoryError

    monkeypatch.setattr(reader, "_read_array", full)
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
