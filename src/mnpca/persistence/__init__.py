"""Files without pickle: fitted models and checkpoints of running fits.

A file is one zip archive, its members stored and not compressed:

    document.json     what the file is, its schema, and a tree of values
    arrays/0.npy ...  the arrays the tree refers to

Nothing in a file is executed: the tree holds plain values and a fixed list of types, arrays are
read without pickle, and whoever reads the tree looks classes up in a table of its own. A file is
written whole or not at all (`write.py`). One that is truncated, altered, foreign, oversized or from
a later version raises `ModelFileError` (`read.py`).
"""

from mnpca.persistence.read import ModelFileError, looks_like, read_document
from mnpca.persistence.write import (
    SCHEMA,
    atomic_write,
    fingerprint,
    remove_leftovers,
    write_document,
)

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
