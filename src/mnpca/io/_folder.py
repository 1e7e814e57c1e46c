"""An output folder that appears complete or not at all."""

import contextlib
import glob
import os
import shutil
import tempfile
import time
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
#: Attempts, twenty a second, to be the only run that begins in a folder.
PATIENCE = 40


@contextlib.contextmanager
def new_folder(path, *, overwrite=False):
    """Give a temporary folder beside `path`; it becomes `path` if the block ends well.

    What a killed run of the same `path` left behind is removed first. While another run is about to
    write it, or if it has appeared meanwhile, nothing is replaced.

    Parameters
    ----------
    path : str or Path
        The folder to be.
    overwrite : bool, default=False
        Replace a folder that an earlier run wrote.
    """
    path = Path(os.path.abspath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        with _beginning(path.parent):
            _remove_leftovers(path)
            check_folder(path, overwrite=overwrite)
            scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}-", suffix=PART, dir=path.parent))
            held.enter_context(_locked(scratch))
        try:
            yield scratch
            scratch.chmod(0o777 & ~_umask())
            check_folder(path, overwrite=overwrite)
            _move(scratch, path)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _move(scratch, path):
    """Give a finished folder its name; an earlier one steps aside until it has it."""
    if not path.exists():
        scratch.rename(path)
        return
    old = scratch.with_suffix(REPLACED)
    path.rename(old)
    scratch.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def _remove_leftovers(path):
    """Remove what killed runs left beside `path`; give back a result that one was replacing."""
    if fcntl is None:
        return
    name = f".{glob.escape(path.name)}-????????"
    for folder in path.parent.glob(name + PART):
        try:
            with _locked(folder) as certain:
                if not certain:
                    continue
                replaced = folder.with_suffix(REPLACED)
                if replaced.exists() and not path.exists():
                    replaced.rename(path)
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            raise DataError(
                f"another run is about to write the folder {quoted(path, 200)}; wait for it, or "
                "name another with -o."
            ) from None
        except FileNotFoundError:  # that run has just ended
            continue
    for folder in path.parent.glob(name + REPLACED):
        if not folder.with_suffix(PART).exists():
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _beginning(parent):
    """Let one run at a time look round and begin; a second waits, but not for ever."""
    with contextlib.ExitStack() as held:
        for _ in range(PATIENCE):
            try:
                held.enter_context(_locked(parent))
                break
            except BlockingIOError:
                time.sleep(0.05)
        yield


@contextlib.contextmanager
def _locked(folder):
    """Hold the folder; the system lets go of it when the process ends, however it ends.

    Gives whether it is held: some network file systems cannot hold folders.

    Raises
    ------
    BlockingIOError
        If another process holds it.
    """
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        held = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            held = False
        yield held
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
