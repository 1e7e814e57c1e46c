"""An output folder that appears complete or not at all."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from mnpca.io._table import DataError, quoted

#: A folder with this file in it was written by mnpca and may be replaced by it.
MARKER = "summary.json"


@contextlib.contextmanager
def new_folder(path, *, overwrite=False):
    """Give a temporary folder beside `path`; it becomes `path` if the block ends well.

    Parameters
    ----------
    path : str or Path
        The folder to be.
    overwrite : bool, default=False
        Replace a folder that an earlier run wrote.
    """
    path = Path(path)
    check_folder(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield scratch
        scratch.chmod(0o777 & ~_umask())
        if path.exists():
            old = scratch.with_name(scratch.name + "-old")
            path.rename(old)
            scratch.rename(path)
            shutil.rmtree(old)
        else:
            scratch.rename(path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


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
