"""The container: a zip archive, written whole or not at all and read with suspicion."""

import contextlib
import io
import json
import math
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mnpca.persistence._values import Decoder, Encoder

SCHEMA = 1
"""Version of the file format."""

DOCUMENT = "document.json"
MEMBER_NAME = re.compile(r"document\.json|arrays/[0-9]{1,6}\.npy")
MEMBER_LIMIT = 10_000
# The header of a .npy member as NumPy writes it. NumPy's own reader evaluates the text as Python.
NPY_HEADER = re.compile(
    r"\{'descr': '([^']{1,20})', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n"
)
# Fixed, so that the same model gives the same bytes.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)


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


def write_document(
    path: str | os.PathLike[str], kind: str, version: str, content: dict[str, Any]
) -> None:
    """Write `content` as a file of the given kind; an older file stays until that is done.

    The content has values of the types that ``_values.py`` lists, by name; one of another type
    raises TypeError, and nothing is written.
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


def looks_like(path: str | os.PathLike[str], kind: str) -> bool:
    """Tell whether a file begins as one of the given kind does; the rest may be damaged."""
    with open(path, "rb") as file:
        head = file.read(256)
    return DOCUMENT.encode() in head and f'"kind": "{kind}"'.encode() in head


def read_document(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
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


def _read(file: BinaryIO, size: int, kind: str) -> dict[str, Any]:
    """Check the archive's shape, then the document's, then decode."""
    if not zipfile.is_zipfile(file):
        raise ModelFileError("it is not an mnpca file, or its end is missing.")
    with zipfile.ZipFile(file) as archive:
        members = _checked_members(archive, size)
        with archive.open(members.pop(DOCUMENT)) as member:
            document = _checked_document(json.loads(member.read()), kind)

        def take_array(number: Any) -> Any:
            # Each array serves once, so a small document cannot ask for many large copies.
            info = members.pop(f"arrays/{int(number)}.npy", None)
            if info is None:
                raise ModelFileError(f"array {number!r} is missing.")
            with archive.open(info) as member:
                return _read_array(member, info.file_size)

        content = Decoder(take_array).decode(document["content"])
    if not isinstance(content, dict):
        raise ModelFileError("its content is not a table of names.")
    return content


def _checked_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name; refuse what `write_document` never writes.

    Members are stored, so all of them together are no larger than the file: that is what makes a
    zip bomb, compressed or of overlapping members, impossible to write in this format.
    """
    infos = archive.infolist()
    if len(infos) > MEMBER_LIMIT:
        raise ModelFileError(f"it has {len(infos)} members, more than {MEMBER_LIMIT}.")
    members = {info.filename: info for info in infos}
    if len(members) != len(infos):
        raise ModelFileError("two members have the same name.")
    for name, info in members.items():
        if not MEMBER_NAME.fullmatch(name):
            raise ModelFileError(f"it has a foreign member {name[:80]!r}.")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ModelFileError(f"its member {name!r} is compressed; mnpca files never are.")
        if info.flag_bits & 0x1:
            raise ModelFileError(f"its member {name!r} is encrypted.")
    if sum(info.file_size for info in infos) > size:
        raise ModelFileError("its members claim more bytes than the file has.")
    if DOCUMENT not in members:
        raise ModelFileError(f"it has no {DOCUMENT}, so it is not an mnpca file.")
    return members


def _checked_document(document: Any, kind: str) -> Any:
    """Check what the document says it is."""
    if not isinstance(document, dict) or document.get("format") != "mnpca":
        raise ModelFileError("it is not an mnpca file.")
    schema = document.get("schema")
    if type(schema) is not int or schema < 1:
        raise ModelFileError(f"its schema number is {schema!r}.")
    if schema > SCHEMA:
        raise ModelFileError(
            f"it was written by a later version (mnpca {document.get('version')}, schema {schema};"
            f" this version reads up to schema {SCHEMA}). Upgrade mnpca to read it."
        )
    if document.get("kind") != kind:
        raise ModelFileError(f"it is a {document.get('kind')!r} file, not a {kind!r} file.")
    return document


def _read_array(member: Any, size: int) -> Any:
    """Read one .npy member whose header must account for every byte of it."""
    start = member.read(10)
    if start[:8] != b"\x93NUMPY\x01\x00":
        raise ModelFileError("an array is not in the .npy format.")
    header_size = int.from_bytes(start[8:], "little")
    header = NPY_HEADER.fullmatch(member.read(header_size).decode("latin1"))
    if header is None:
        raise ModelFileError("an array has a header that mnpca never writes.")
    dtype, fortran = np.dtype(header[1]), header[2] == "True"
    shape = tuple(int(length) for length in header[3].replace(" ", "").split(",") if length)
    if dtype.kind not in "biufcSUmM" or dtype.shape:
        raise ModelFileError(f"an array has the type {dtype}, which mnpca never writes.")
    count = math.prod(shape)
    if len(start) + header_size + count * dtype.itemsize != size:
        raise ModelFileError("an array's header does not match its size.")
    flat = np.empty(count, dtype)
    if flat.nbytes:
        buffer = io.BufferedReader(member)
        if buffer.readinto(flat.view(np.uint8).data) != flat.nbytes:
            raise ModelFileError("an array is cut short.")
        member = buffer
    if member.read(1):  # reading the end is also what makes zipfile compare the checksum
        raise ModelFileError("an array has bytes to spare.")
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ModelFileError("an array of truth values holds other values.")
    return flat.reshape(shape, order="F" if fortran else "C")


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes its name only once all of it is on the disk.

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
    _sync_folder(target.parent)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files that killed writers of `path` left behind."""
    target = Path(os.path.realpath(path))
    for entry in target.parent.glob(".*.part"):
        stem = entry.name.removesuffix(".part").rpartition(".")[0]
        if stem == f".{target.name}":
            entry.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut; Windows offers no such call on folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
