"""Writing: values become a JSON tree with arrays beside it, and files appear whole or not at all.

JSON holds None, truth values, integers, finite floats, strings and lists as they are. Everything
else is a JSON object whose key "type" names its type; only the types that `Encoder` knows exist.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from mnpca._typing import PathLike
from mnpca.model.low_rank import LowRank

SCHEMA = 1
"""Version of the file format."""

DOCUMENT = "document.json"
# Fixed, so that the same model gives the same bytes.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
NAMED_TUPLES: dict[str, type[Any]] = {"LowRank": LowRank}
"""Types written as their fields, by the name they have in files."""

SPARSE_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
PLAIN_OBJECTS = (str, int, float, bool, type(None))
#: Kinds of NumPy's types whose values are bytes of their own.
ARRAY_KINDS = "biufcSUmM"


def write_document(path: PathLike, kind: str, version: str, content: dict[str, Any]) -> None:
    """Write `content` as a file of the given kind; an older file stays until that is done.

    The content has values of the types that `Encoder` knows, by name; one of another type raises
    TypeError, and nothing is written.
    """
    encoder = Encoder()
    tree = encoder.encode(content, where="content")
    document = {
        "format": "mnpca",
        "kind": kind,
        "schema": SCHEMA,
        "version": version,
        "content": tree,
    }
    text = json.dumps(document, allow_nan=False, indent=1).encode()
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(DOCUMENT, TIMESTAMP), text)
        for number, array in enumerate(encoder.arrays):
            info = zipfile.ZipInfo(f"arrays/{number}.npy", TIMESTAMP)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


class Encoder:
    """Turns values into a JSON tree and a list of arrays beside it."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []

    def encode(self, value: Any, where: str) -> Any:
        """Return the JSON form of `value`; `where` names it in an error message."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if np.isfinite(value) else {"type": "float", "value": repr(value)}
        if kind is list:
            return self._items(value, where)
        if kind is tuple:
            return {"type": "tuple", "items": self._items(value, where)}
        if kind is dict or kind is Bunch:
            items = [
                [self.encode(key, f"a key of {where}"), self.encode(item, f"{where}[{key!r}]")]
                for key, item in value.items()
            ]
            return {"type": kind.__name__, "items": items}
        if NAMED_TUPLES.get(kind.__name__) is kind:
            return {"type": kind.__name__, "items": self._items(tuple(value), where)}
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if kind is np.ndarray:
            return self._array(value, where)
        if sp.issparse(value):
            return self._sparse(value, where)
        if kind is np.random.RandomState:
            state = value.get_state(legacy=False)
            if state["bit_generator"] == "MT19937":
                return {"type": "RandomState", "state": self.encode(state, where)}
        raise TypeError(
            f"{where} is a {kind.__module__}.{kind.__qualname__}, which a model file cannot hold. "
            "Files hold numbers, strings, NumPy and SciPy sparse arrays, lists, tuples and dicts."
        )

    def _items(self, values: Any, where: str) -> list[Any]:
        return [self.encode(item, f"{where}[{i}]") for i, item in enumerate(values)]

    def _scalar(self, value: np.generic, where: str) -> dict[str, Any]:
        if value.dtype.kind not in ARRAY_KINDS:
            raise TypeError(f"{where} is a NumPy {value.dtype} scalar, which cannot be stored.")
        # As an array, an empty string has the same length in its type and in its bytes.
        array = np.asarray(value)
        return {"type": "scalar", "dtype": array.dtype.str, "hex": array.tobytes().hex()}

    def _array(self, value: Any, where: str) -> dict[str, Any]:
        if value.dtype.kind == "O":
            if not all(type(item) in PLAIN_OBJECTS for item in value.flat):
                raise TypeError(f"{where} is an object array of more than strings and numbers.")
            items = self._items(value.ravel().tolist(), where)
            return {"type": "objects", "shape": list(value.shape), "items": items}
        if value.dtype.kind not in ARRAY_KINDS:
            raise TypeError(f"{where} is an array of {value.dtype}, which cannot be stored.")
        self.arrays.append(value)
        return {"type": "array", "number": len(self.arrays) - 1}

    def _sparse(self, value: Any, where: str) -> dict[str, Any]:
        if value.format not in SPARSE_PARTS or value.ndim != 2:
            raise TypeError(f"{where} is a sparse {value.format} array; convert it to csr.")
        parts = [getattr(value, name) for name in SPARSE_PARTS[value.format]]
        return {
            "type": "sparse",
            "format": value.format,
            "matrix": isinstance(value, sp.spmatrix),
            "shape": list(map(int, value.shape)),
            "parts": [self._array(part, where) for part in parts],
        }


def fingerprint(value: Any) -> str:
    """Return a digest of a value that files can hold, the same for equal values.

    Arrays count by type, shape and elements, not by their layout in memory.
    """
    encoder = Encoder()
    tree = encoder.encode(value, where="value")
    digest = hashlib.blake2b(json.dumps(tree, allow_nan=False).encode(), digest_size=16)
    for array in encoder.arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        # By rows, so that a transposed or sliced matrix is never copied whole.
        for row in array if array.ndim > 1 else [array]:
            digest.update(np.ascontiguousarray(row).view(np.uint8).data)
    return digest.hexdigest()


@contextlib.contextmanager
def atomic_write(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file that gets its name only when all of it is on the disk.

    The bytes go to a temporary file in the same folder, which is flushed to the disk and then
    renamed over `path`. Whatever happens before the rename (an exception, a full disk, a killed
    process) leaves an older file of that name as it was.

    Examples
    --------
    >>> import os, tempfile
    >>> from mnpca.persistence import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(os.path.join(folder, "a.bin")) as file:
    ...         _ = file.write(b"abc")
    ...     os.listdir(folder)
    ['a.bin']
    """
    # A link keeps pointing at the file that the new content goes to.
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder of {str(path)!r} does not exist; create it first.")
    if target.exists() and not target.is_file():  # a folder, or a device such as /dev/null
        raise FileExistsError(f"{str(path)!r} exists and is not a file; name a file.")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():  # what others may not read stays so
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # make the rename survive a power cut
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(path: PathLike) -> None:
    """Remove the temporary files that killed writers of `path` left behind."""
    target = Path(os.path.realpath(path))
    for entry in target.parent.glob(".*.part"):
        if entry.name.rsplit(".", 2)[0] == f".{target.name}":
            entry.unlink(missing_ok=True)
