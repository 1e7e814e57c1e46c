"""Files that are written whole or not at all."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


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
