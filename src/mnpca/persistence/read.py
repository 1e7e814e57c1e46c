"""Reading, with suspicion: a file may be truncated, altered, foreign, oversized or hostile."""

import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from mnpca._typing import PathLike
from mnpca.persistence.write import ARRAY_KINDS, DOCUMENT, NAMED_TUPLES, PLAIN_OBJECTS, SCHEMA

MEMBER_NAME = re.compile(r"document\.json|arrays/[0-9]{1,6}\.npy")
MEMBER_LIMIT = 10_000
# The header of a .npy member as NumPy writes it. NumPy's own reader evaluates the text as Python.
NPY_HEADER = re.compile(
    r"\{'descr': '([^']{1,20})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n"
)


class ModelFileError(ValueError):
    """A file that is not a whole and readable mnpca file of the kind asked for.

    Examples
    --------
    >>> import pathlib
    >>> import mnpca
    >>> _ = pathlib.Path("model.mnpca").write_text("something else")
    >>> try:
    ...     mnpca.load("model.mnpca")
    ... except mnpca.ModelFileError:
    ...     print("no model")
    no model
    """

    def __init__(self, message: str) -> None:
        # A file may hold megabytes where a name should be.
        message = " ".join(message.split())
        super().__init__(message if len(message) < 900 else f"{message[:900]}...")


def looks_like(path: PathLike, kind: str) -> bool:
    """Tell whether a file begins as one of the given kind does; the rest may be damaged."""
    with open(path, "rb") as file:
        head = file.read(256)
    return DOCUMENT.encode() in head and f'"kind": "{kind}"'.encode() in head


def read_document(path: PathLike, kind: str) -> dict[str, Any]:
    """Read the content of a file that `write_document` made.

    Memory stays proportional to the size of the file, whatever the file claims.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If it is not a whole file of that kind that this version can read.
    MemoryError
        If a good file does not fit.
    """
    name = os.fspath(path)
    # A pipe or a device could block or never end.
    if not os.path.isfile(name):
        if os.path.lexists(name):
            raise ModelFileError(f"{name!r} is not a regular file.")
        raise FileNotFoundError(f"There is no file {name!r}.")
    with open(name, "rb") as file:
        try:
            return _read(file, os.fstat(file.fileno()).st_size, kind)
        except MemoryError:
            raise  # arrays are no larger than the file, so it may be a good one
        except ModelFileError as error:
            raise ModelFileError(f"{name!r} cannot be read: {error}") from error.__cause__
        except Exception as error:
            # Arbitrary bytes make zipfile, json and NumPy raise nearly anything.
            raise ModelFileError(
                f"{name!r} cannot be read: it is damaged or not an mnpca file "
                f"({type(error).__name__}: {error}). Use an intact copy."
            ) from error


def _demand(holds: Any, otherwise: str) -> None:
    """Refuse the file, with a reason, unless something holds."""
    if not holds:
        raise ModelFileError(otherwise)


def _read(file: BinaryIO, size: int, kind: str) -> dict[str, Any]:
    """Check the archive's form, then the document's, then decode."""
    _demand(zipfile.is_zipfile(file), "it is not an mnpca file, or its end is missing.")
    with zipfile.ZipFile(file) as archive:
        members = _checked_members(archive, size)
        with archive.open(members.pop(DOCUMENT)) as member:
            document = _checked_document(json.loads(member.read()), kind)

        def take_array(number: Any) -> Any:
            # Each array serves once, so a small document cannot ask for many large copies.
            name = f"arrays/{int(number)}.npy"
            _demand(name in members, f"array {number!r} is missing.")
            info = members.pop(name)
            with archive.open(info) as member:
                return _read_array(member, info.file_size)

        content = Decoder(take_array).decode(document["content"])
    _demand(isinstance(content, dict), "its content is not a table of names.")
    return dict(content)


def _checked_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name; refuse what `write_document` never writes.

    Members are stored, so all of them together are no larger than the file: that is what makes a
    zip bomb, compressed or of overlapping members, impossible to write in this format.
    """
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    few = len(infos) <= MEMBER_LIMIT
    _demand(few, f"it has {len(infos)} members, more than {MEMBER_LIMIT}.")
    _demand(len(members) == len(infos), "two members have the same name.")
    for name, info in members.items():
        _demand(MEMBER_NAME.fullmatch(name), f"it has a foreign member {name[:80]!r}.")
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        _demand(stored, f"its member {name!r} is compressed; mnpca files never are.")
        _demand(not info.flag_bits & 0x1, f"its member {name!r} is encrypted.")
    claimed = sum(info.file_size for info in infos)
    _demand(claimed <= size, "its members claim more bytes than the file has.")
    _demand(DOCUMENT in members, f"it has no {DOCUMENT}, so it is not an mnpca file.")
    return members


def _checked_document(document: Any, kind: str) -> Any:
    """Check what the document says it is."""
    ours = isinstance(document, dict) and document.get("format") == "mnpca"
    _demand(ours, "it is not an mnpca file.")
    schema = document.get("schema")
    _demand(type(schema) is int and schema >= 1, f"its schema number is {schema!r}.")
    _demand(
        schema <= SCHEMA,
        f"it was written by a later version (mnpca {document.get('version')}, schema {schema}; "
        f"this version reads up to schema {SCHEMA}). Upgrade mnpca to read it.",
    )
    there = document.get("kind")
    _demand(there == kind, f"it is a {there!r} file, not a {kind!r} file.")
    return document


def _read_array(member: Any, size: int) -> Any:
    """Read one .npy member whose header must account for every byte of it."""
    start = member.read(10)
    _demand(start[:8] == b"\x93NUMPY\x01\x00", "an array is not in the .npy format.")
    header_size = int.from_bytes(start[8:], "little")
    header = NPY_HEADER.fullmatch(member.read(header_size).decode("latin1"))
    if header is None:
        raise ModelFileError("an array has a header that mnpca never writes.")
    dtype, fortran = np.dtype(header[1]), header[2] == "True"
    shape = tuple(int(length) for length in header[3].replace(" ", "").split(",") if length)
    plain = dtype.kind in ARRAY_KINDS and not dtype.shape
    _demand(plain, f"an array has the type {dtype}, which mnpca never writes.")
    count = math.prod(shape)
    told = len(start) + header_size + count * dtype.itemsize
    _demand(told == size, "an array's header does not match its size.")
    flat = np.empty(count, dtype)
    if flat.nbytes:
        member = io.BufferedReader(member)
        filled = member.readinto(flat.view(np.uint8).data)
        _demand(filled == flat.nbytes, "an array is cut short.")
    # Reading the end is also what makes zipfile compare the checksum.
    _demand(not member.read(1), "an array has bytes to spare.")
    if dtype.kind == "b":
        binary = flat.view(np.uint8).max(initial=0) <= 1
        _demand(binary, "an array of truth values holds other values.")
    return flat.reshape(shape, order="F" if fortran else "C")


class Decoder:
    """Turns a JSON tree back into values; `take_array` fetches an array by its number."""

    def __init__(self, take_array: Callable[[Any], Any]) -> None:
        self._take_array = take_array

    def decode(self, tree: Any) -> Any:
        """Return the value that `Encoder.encode` wrote; unknown types raise ValueError."""
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        kind = tree["type"]
        if kind in NAMED_TUPLES:
            return NAMED_TUPLES[kind](*self.decode(tree["items"]))
        decoders = {
            "float": lambda t: float(t["value"]),
            "tuple": lambda t: tuple(self.decode(t["items"])),
            "dict": self._dict,
            "Bunch": lambda t: Bunch(**self._dict(t)),
            "scalar": self._scalar,
            "array": lambda t: self._take_array(t["number"]),
            "objects": self._objects,
            "sparse": self._sparse,
            "RandomState": self._random_state,
        }
        if kind not in decoders:
            raise ValueError(f"unknown type {kind!r}")
        return decoders[kind](tree)

    def _dict(self, tree: dict[str, Any]) -> dict[Any, Any]:
        return {self.decode(key): self.decode(item) for key, item in tree["items"]}

    def _scalar(self, tree: dict[str, Any]) -> Any:
        dtype = np.dtype(str(tree["dtype"]))
        data = bytes.fromhex(tree["hex"])
        if dtype.kind not in ARRAY_KINDS or len(data) != dtype.itemsize:
            raise ValueError("a scalar does not match its type")
        return np.frombuffer(data, dtype)[0] if data else dtype.type()

    def _objects(self, tree: dict[str, Any]) -> Any:
        items = self.decode(tree["items"])
        if not all(type(item) in PLAIN_OBJECTS for item in items):
            raise ValueError("an object array holds more than strings and numbers")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(tree["shape"])

    def _sparse(self, tree: dict[str, Any]) -> Any:
        form = tree["format"]
        parts = [self.decode(part) for part in tree["parts"]]
        if not all(type(part) is np.ndarray and part.dtype.kind in "biufc" for part in parts):
            raise ValueError("a part of a sparse array is not an array of numbers")
        shape = tuple(map(int, tree["shape"]))
        arguments = (parts[0], (parts[1], parts[2])) if form == "coo" else tuple(parts)
        make = getattr(sp, f"{form}_{'matrix' if tree['matrix'] else 'array'}")
        value = make(arguments, shape=shape)
        if form in ("csr", "csc"):
            # SciPy's compiled routines trust the indices, so they are checked here, once.
            value.check_format(full_check=True)
        return value

    def _random_state(self, tree: dict[str, Any]) -> np.random.RandomState:
        state = self.decode(tree["state"])
        # NumPy trusts the position, and would read past the key.
        if not 0 <= state["state"]["pos"] <= 624:
            raise ValueError("a random state has its position outside its key")
        generator = np.random.RandomState()
        generator.set_state(state)
        return generator
