"""What the tests of the file format share."""

import zipfile

import numpy as np
import scipy.sparse as sp


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


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, named, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in named.items():
            archive.writestr(name, data)
