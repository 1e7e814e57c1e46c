"""Altered data files: damage, hostile cells, lying headers and bombs."""

import gzip
import io
import os
import zipfile

import fuzz_bytes
import numpy as np
import scipy.io
import scipy.sparse as sp
from fuzz_models import Payload

from mnpca.io import DataError, read_table, safe_cell

CELLS = [
    "=1+1",
    "=cmd|'/C calc'!A0",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    '"',
    '""',
    "'",
    ",",
    ";",
    "\r",
    "\n",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e-400",
    "1,5",
    "0x10",
    "1_000",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "\ufeff",
    "\u202e",
    "\U0001f600",
    "a" * 5000,
    "9" * 400,
    "",
    " ",
    "1e4294967000",
    "1E7736976014",
    "-0.1e-4294967290",
]


def corpus(rng, folder):
    """Return (name, bytes) of a good file of every format that needs no extra package."""
    values = rng.normal(size=(20, 6))
    lines = ["name," + ",".join(f"v{j}" for j in range(6))]
    lines += [f"r{i}," + ",".join(f"{v:.6g}" for v in row) for i, row in enumerate(values)]
    text = "\n".join(lines).encode()
    files = [("a.csv", text), ("a.tsv", text.replace(b",", b"\t")), ("a.txt", text)]
    files.append(("a.npy", _saved(np.save, values)))
    names = np.array([f"r{i}" for i in range(20)])
    files.append(("a.npz", _saved(np.savez, X=values, row_names=names)))
    files.append(("b.npz", _saved(np.savez_compressed, data=values)))
    sparse = sp.csr_array(rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.4))
    files.append(("c.npz", _saved(sp.save_npz, sparse)))
    files.append(("a.mtx", _saved(scipy.io.mmwrite, sparse)))
    files.append(("b.mtx", _saved(scipy.io.mmwrite, values)))
    files += [(f"{name}.gz", gzip.compress(data)) for name, data in list(files)]
    try:
        import pandas as pd

        files.append(("a.parquet", pd.DataFrame(values, columns=list("abcdef")).to_parquet()))
    except ImportError:
        pass
    return files


def _saved(save, *arrays, **named):
    out = io.BytesIO()
    save(out, *arrays, **named)
    return out.getvalue()


def alter(files, rng):
    """Return (way, file name, bytes) of one altered file."""
    name, data = files[rng.integers(len(files))]
    if rng.random() < 0.45:
        way = str(rng.choice([*fuzz_bytes.WAYS, "junk"]))
        alterer = fuzz_bytes.WAYS.get(way, fuzz_bytes.junk)
        if name.endswith(".gz") and rng.random() < 0.5:  # damage inside a sound archive
            return way, name, gzip.compress(alterer(gzip.decompress(data), rng))
        return way, name, alterer(data, rng)
    way = str(rng.choice(list(STRUCTURAL)))
    name, data = STRUCTURAL[way](rng)
    return way, name, data


def read(path):
    """Read the file; a table that is read has names that can be written safely."""
    try:
        table = read_table(path)
    except DataError:
        return "refused"
    if table.values.ndim != 2 or table.values.dtype != np.float64:
        return f"unexpected values {table.values.dtype} {table.values.shape}"
    for name in (table.row_names or []) + (table.column_names or []):
        if safe_cell(name)[:1] in ("=", "@", "\t", "\r"):
            return f"unexpected formula {name!r}"
    return "read"


def cells(rng):
    """Make a table of hostile cells."""
    mark = str(rng.choice([",", ";", "\t"]))
    n_rows, n_columns = rng.integers(1, 30), rng.integers(1, 12)
    lines = []
    for _ in range(n_rows):
        row = [
            CELLS[rng.integers(len(CELLS))] if rng.random() < 0.3 else f"{rng.normal():.3g}"
            for _ in range(n_columns + (rng.random() < 0.05))
        ]
        lines.append(mark.join(row))
    text = str(rng.choice(["\n", "\r\n", "\r"])).join(lines)
    encoding = str(rng.choice(["utf-8", "utf-8", "utf-16", "utf-8-sig"]))
    return "cells" + str(rng.choice([".csv", ".tsv", ".txt"])), text.encode(encoding)


def wide(rng):
    """Make very many columns, or one very long line."""
    count = int(10 ** rng.uniform(4, 5.3))
    if rng.random() < 0.5:
        return "wide.csv", b"x" * (count * 20)
    return "wide.csv", b"\n".join([b",".join([b"1"] * count)] * 3)


def npy_header(rng):
    """Make an array that claims another shape or type than it has."""
    shape = tuple(int(s) for s in rng.choice([-1, 0, 1, 7, 10**6, 10**12, 2**62], rng.integers(4)))
    dtype = rng.choice(["<f8", "|O", "<i4", "|V8", "<U9999999", ">f8", "<M8[s]", "|b1", "zz"])
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    padded = header.encode().ljust(117) + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + rng.bytes(400)
    if rng.random() < 0.5:
        return "header.npy", data
    return "header.npz", _archive({"X.npy": data}, rng)


def sparse_lies(rng):
    """Make a sparse archive whose indices or shape are wrong."""
    matrix = sp.csr_array(rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.4))
    parts = {
        "format": np.array(str(rng.choice(["csr", "csc", "coo", "bsr", "dia", "zzz"])).encode()),
        "shape": np.array([[20, 6], [3, 3], [10**5, 10**5], [-1, 6], [6]][rng.integers(5)][:2]),
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "row": matrix.indices,
        "col": matrix.indices,
        "offsets": np.arange(3),
    }
    key = str(rng.choice(["indices", "indptr", "row", "col", "offsets", "data"]))
    parts[key] = rng.integers(-(10**9), 10**9, size=len(parts[key]))
    return "lies.npz", _saved(np.savez, **parts)


def pickled(rng):
    """Make an object array whose pickle would run code."""
    array = np.array([[Payload()]], dtype=object)
    if rng.random() < 0.5:
        return "object.npy", _saved(np.save, array)
    return "object.npz", _saved(np.savez, X=array)


def member_names(rng):
    """Make an archive whose members lead out of the folder."""
    members = {"../../escaped.npy": _saved(np.save, np.eye(3)), "/escaped": b"x"}
    return "names.npz", _archive(members, rng)


def market(rng):
    """Make a Matrix Market header that lies about size, or entries out of range."""
    rows, columns, entries = rng.choice([0, 1, 3, 10**5, 10**10, -1], 3)
    kind = str(
        rng.choice(["coordinate real", "array real", "coordinate complex", "coordinate pattern"])
    )
    body = "\n".join(f"{rng.integers(-2, 9)} {rng.integers(-2, 9)} 1.5" for _ in range(5))
    head = f"%%MatrixMarket matrix {kind} general\n{rows} {columns} {entries}\n"
    return "lies.mtx", (head + body).encode()


def bomb(rng):
    """Make a small file that unpacks to a large one."""
    size = int(10 ** rng.uniform(7, 8))
    form = rng.integers(4)
    if form == 0:
        return "bomb.csv.gz", gzip.compress(b"1," * (size // 2))
    if form == 1:
        return "bomb.csv.gz", gzip.compress(b"1\n" * (size // 20))
    array = _saved(np.save, np.zeros(size // 8))
    members = (
        {"X.npy": array}
        if form == 2
        else {"X.npy": _saved(np.save, np.eye(3)), "row_names.npy": array}
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return "bomb.npz", out.getvalue()


def wrong_ending(rng):
    """Make a file of one format with the ending of another, or of none."""
    ending = str(
        rng.choice([".csv", ".npy", ".npz", ".mtx", ".parquet", ".h5ad", ".csv.gz", ".exe", ""])
    )
    data = [
        _saved(np.save, np.eye(3)),
        b"a,b\n1,2\n3,4\n",
        os.urandom(0),
        rng.bytes(300),
        b"PK\5\6" + bytes(18),
    ]
    return "other" + ending, data[rng.integers(len(data))]


def _archive(members, rng):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


STRUCTURAL = {
    "hostile cells": cells,
    "wide": wide,
    "array header": npy_header,
    "sparse lies": sparse_lies,
    "pickle": pickled,
    "member names": member_names,
    "matrix market": market,
    "bomb": bomb,
    "wrong ending": wrong_ending,
}
