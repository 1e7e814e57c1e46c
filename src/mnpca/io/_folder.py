"""An output folder that appears complete or not at all."""

import contextlib
import glob
import os
import shutil
import tempfile
from pathlib import Path

from mnpca.io._table import DataError, quoted

try:
    import fcntl
except ImportError:  # Windows, where leftovers of killed runs stay
    fcntl = None

#: A folder with this file in it was written by mnpca and may be replaced by it.
MARKER = "summary.json"
#: Endings of folders in the making, and of an earlier result while the new one takes its place.
PART, REPLACED = ".mnpca-part", ".mnpca-replaced"


@contextlib.contextmanager
def new_folder(path, *, overwrite=False):
    """Give a temporary folder beside `path`; it becomes `path` if the block ends well.

    What a killed run of the same `path` left behind is removed first.

    Parameters
    ----------
    path : str or Path
        The folder to be.
    overwrite : bool, default=False
        Replace a folder that an earlier run wrote.
    """
    path = Path(path)
    _remove_leftovers(path)
    check_folder(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}-", suffix=PART, dir=path.parent))
    with _locked(scratch):
        try:
            yield scratch
            scratch.chmod(0o777 & ~_umask())
            if path.exists():
                old = scratch.with_suffix(REPLACED)
                path.rename(old)
                scratch.rename(path)
                shutil.rmtree(old, ignore_errors=True)
            else:
                scratch.rename(path)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _remove_leftovers(path):
    """Remove what killed runs left beside `path`; give back a result that one was replacing."""
    if fcntl is None:
        return
    name = f".{glob.escape(path.name)}-????????"
    for folder in path.parent.glob(name + PART):
        with contextlib.suppress(OSError), _locked(folder):
            replaced = folder.with_suffix(REPLACED)
            if replaced.exists() and not path.exists():
                replaced.rename(path)
            shutil.rmtree(folder, ignore_errors=True)
    for folder in path.parent.glob(name + REPLACED):
        if not folder.with_suffix(PART).exists():
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder):
    """Hold the folder; the system lets go of it when the process ends, however it ends.

    Raises
    ------
    OSError
        If another process holds it.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def check_folder(path, *, overwrite=False):
    """Refuse an output folder that would hide or destroy something."""
    path = Path(path)
    if path.is_file():
        raise DataError(f"the output {quoted(path, 200)} is a file; name a folder with -o.")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not overwrite:
        raise DataError(
            f"the folder {quoted(path, 200)} exists; name another with -o, or pass --overwrite."
        )
    if not (path / MARKER).is_file():
        raise DataError(
            f"the folder {quoted(path, 200)} was not written by mnpca, so --overwrite does not "
            "replace it; name another with -o."
        )


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
