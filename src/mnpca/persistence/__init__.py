"""Files without pickle: fitted models and checkpoints of running fits.

A file is one zip archive, its members stored and not compressed:

    document.json     what the file is, its schema, and a tree of values
    arrays/0.npy ...  the arrays the tree refers to

Nothing in a file is executed: the tree holds plain values and a fixed list of types
(`_values.py`), arrays are read without pickle, and whoever reads the tree looks classes up in a
table of its own. A file is written whole or not at all. One that is truncated, altered, foreign,
oversized or from a later version raises `ModelFileError` (`_archive.py`).
"""

from mnpca.persistence._archive import (
    SCHEMA,
    ModelFileError,
    atomic_write,
    looks_like,
    read_document,
    remove_leftovers,
    write_document,
)
from mnpca.persistence._values import fingerprint

__all__ = [
    "SCHEMA",
    "ModelFileError",
    "atomic_write",
    "fingerprint",
    "looks_like",
    "read_document",
    "remove_leftovers",
    "write_document",
]
