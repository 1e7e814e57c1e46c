"""Result files: CSV that is safe to open, in a folder that appears complete or not at all."""

import contextlib
import csv
import glob
import io
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mnpca._typing import PathLike
from mnpca.io._messages import DataError, quoted
from mnpca.persistence import atomic_write

try:
    import fcntl
except ImportError:  # Windows, where leftovers of killed runs stay
    fcntl = None  # type: ignore[assignment]

#: How a cell begins that spreadsheets read as a formula, in some countries in full width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
#: The names of what mnpca wrote into a folder, a line each: the files that it may replace.
MANIFEST = ".mnpca-files"
#: Endings of folders in the making, and of an earlier result while the new one takes its place.
PART, REPLACED = ".mnpca-part", ".mnpca-replaced"
#: Attempts, twenty a second, to be the only run that begins in a folder.
PATIENCE = 40


@contextlib.contextmanager
def new_folder(path: PathLike, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, which becomes `path` if the block ends well.

    What a killed run of the same `path` left behind is removed first. While another run is about to
    write it, or if it has appeared meanwhile, nothing is replaced.

    Parameters
    ----------
    path : str or Path
        The folder to be.
    overwrite : bool, default=False
        Replace the files that an earlier run wrote into `path`; others stay as they are.

    Examples
    --------
    >>> from mnpca.io import new_folder
    >>> with new_folder("results") as folder:
    ...     _ = (folder / "note.txt").write_text("done")
    """
    # A link keeps pointing at the folder that the results go to.
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        with _only_beginner(path.parent):
            _remove_leftovers(path)
            check_folder(path, overwrite=overwrite)
            scratch = path.with_name(f".{path.name}-{secrets.token_hex(4)}{PART}")
            scratch.mkdir()
            held.enter_context(_locked(scratch))
        try:
            yield scratch
            names = [*sorted(os.listdir(scratch)), MANIFEST]
            (scratch / MANIFEST).write_text("\n".join(names) + "\n", encoding="utf-8")
            check_folder(path, overwrite=overwrite)
            _move(scratch, path)
        finally:
            _end_replacement(scratch, path)
            shutil.rmtree(scratch, ignore_errors=True)


def _move(scratch: Path, path: Path) -> None:
    """Move finished files to their place, and those of an earlier run aside until all are there."""
    if not path.exists():
        scratch.rename(path)
        return
    ours, new = _manifest(path), _manifest(scratch)
    for file in (path / name for name in new if name not in ours):
        if file.exists():
            raise DataError(
                f"{quoted(file, 200)} was not written by mnpca, so it is not replaced; move it, or "
                "name another folder with -o."
            )
    old = scratch.with_suffix(REPLACED)
    old.mkdir()
    for name in ours:
        if (path / name).exists():
            (path / name).rename(old / name)
    for name in new:  # the manifest is the last
        (scratch / name).rename(path / name)


def _end_replacement(scratch: Path, path: Path) -> None:
    """Finish a replacement if the new manifest is in its place, otherwise undo it."""
    old = scratch.with_suffix(REPLACED)
    if not old.exists():
        return
    if (scratch / MANIFEST).exists():
        for name in _manifest(scratch):
            if not (scratch / name).exists():
                (path / name).rename(scratch / name)
        for file in old.iterdir():
            file.rename(path / file.name)
    shutil.rmtree(old, ignore_errors=True)


def _manifest(folder: Path) -> list[str]:
    """Return the names of the files that mnpca wrote into a folder, the manifest last."""
    try:
        names = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [name for name in names if name == os.path.basename(name) != ""]


def _remove_leftovers(path: Path) -> None:
    """Remove what killed runs left beside `path`; restore files that one was replacing."""
    if fcntl is None:
        return
    for folder in path.parent.glob(f".{glob.escape(path.name)}-????????{PART}"):
        try:
            with _locked(folder) as certain:
                if not certain:
                    continue
                _end_replacement(folder, path)
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            raise DataError(
                f"another run is about to write the folder {quoted(path, 200)}; wait for it, or "
                "name another with -o."
            ) from None
        except FileNotFoundError:  # that run has just ended
            continue


@contextlib.contextmanager
def _only_beginner(parent: Path) -> Iterator[None]:
    """Let one run at a time begin in a folder; a second one waits, but not for ever."""
    with contextlib.ExitStack() as held:
        for _ in range(PATIENCE):
            try:
                held.enter_context(_locked(parent))
                break
            except BlockingIOError:
                time.sleep(0.05)
        yield


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock the folder until the block or the process ends; BlockingIOError if another one has.

    Yields whether it is locked: some network file systems cannot lock folders.
    """
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        held = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if isinstance(error, BlockingIOError):
                raise
            held = False
        yield held
    finally:
        os.close(descriptor)


def check_folder(path: PathLike, *, overwrite: bool = False) -> None:
    """Refuse an output folder that would hide or destroy something.

    Examples
    --------
    >>> from mnpca.io import check_folder
    >>> check_folder("results to be")  # nothing is there
    """
    path = Path(path)
    if path.is_file():
        raise DataError(f"the output {quoted(path, 200)} is a file; name a folder with -o.")
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not overwrite:
        raise DataError(
            f"the folder {quoted(path, 200)} exists; name another with -o, or pass --overwrite."
        )
    if not _manifest(path):
        raise DataError(
            f"the folder {quoted(path, 200)} was not written by mnpca, so --overwrite does not "
            "replace it; name another with -o."
        )


def safe_cell(text: object) -> str:
    """Return a name as a cell that no spreadsheet takes for a formula.

    A cell that begins with ``= + - @`` (also in full width), a tab or a line break gets an
    apostrophe in front, unless it is a plain number.

    Examples
    --------
    >>> from mnpca.io import safe_cell
    >>> safe_cell("=1+1"), safe_cell("-0.5"), safe_cell("gene")
    ("'=1+1", '-0.5', 'gene')
    """
    text = str(text)
    if text.startswith(_FORMULA):
        try:
            float(text)
        except ValueError:
            return "'" + text
    return text


def write_csv(path: PathLike, header: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows of names and numbers; names are made safe, numbers keep all their digits.

    The file appears complete or not at all.

    Examples
    --------
    >>> from mnpca.io import write_csv
    >>> write_csv("scores.csv", ["name", "PC1"], [["ann", 0.5], ["bob", -0.5]])
    """
    with atomic_write(path) as binary:
        out = io.TextIOWrapper(binary, "utf-8", errors="replace", newline="")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([safe_cell(cell) for cell in header])
        for row in rows:
            writer.writerow([safe_cell(cell) if isinstance(cell, str) else cell for cell in row])
        out.flush()
        out.detach()  # the file is closed where it was opened, after it reached the disk
