"""Results on disk: one tidy CSV, written cell by cell, safe against a kill at any moment."""

import csv
import io
import os
from pathlib import Path

import numpy as np

from mnpca.persistence import atomic_write, remove_leftovers
from reproduction.cells import Cell

RESULTS = "results.csv"
COLUMNS = ("experiment", "data", "method", "seed", "metric", "value", "note")
# The last row of a cell; a cell without it was cut off and is computed again.
LAST_METRIC = "seconds"


class ResultsError(ValueError):
    """A file of results that cannot be used; it is left as it is."""


class ResultStore:
    """Append-only results; a finished cell is never lost and never computed twice.

    The rows of a cell go to the file in one write and end with its ``seconds``. Opening the store
    drops what a kill in the middle of a write left behind. Arrays are stored in files of their
    own before the rows, so a finished cell has them.

    Parameters
    ----------
    folder : path
        Where ``results.csv`` and the folder ``arrays`` are kept.

    Raises
    ------
    ResultsError
        If ``results.csv`` is there and not a file of results; it is left as it is.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / RESULTS
        self._rows = {}
        self._open()

    def _open(self):
        text = ""
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8", errors="replace")
        header = _as_text([COLUMNS])
        if not (text.startswith(header) or header.startswith(text)):
            raise ResultsError(
                f"{str(self.path)!r} holds no results of the reproduction; name another folder."
            )
        complete = text[: text.rfind("\n") + 1]
        pending = {}
        for row in csv.reader(io.StringIO(complete)):
            if len(row) != len(COLUMNS) or row[0] == COLUMNS[0]:
                continue
            cell, measured = self._parsed(row)
            pending.setdefault(cell, []).append(measured)
            if measured[0] == LAST_METRIC:
                self._rows[cell] = pending.pop(cell)
        kept = header + "".join(_cell_text(c, rows) for c, rows in self._rows.items())
        if kept != text:
            _replace(self.path, kept.encode())

    def _parsed(self, row):
        """Return the cell of a row, and its (metric, value, note)."""
        try:
            return Cell(*row[:3], int(row[3])), (row[4], float(row[5]), row[6])
        except ValueError as error:
            raise ResultsError(
                f"{str(self.path)!r} is damaged: in the row {','.join(row)[:80]!r} the seed or the "
                "value is no number. Remove the rows of that cell and run again."
            ) from error

    def __contains__(self, cell):
        return cell in self._rows

    def __len__(self):
        return len(self._rows)

    def add(self, cell, outcome, seconds):
        """Write a finished cell; on return it is on the disk."""
        if outcome.arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **outcome.arrays)
            _replace(self._array_path(cell), buffer.getvalue())
        rows = [(name, float(value), outcome.note) for name, value in outcome.metrics.items()]
        rows.append((LAST_METRIC, float(seconds), ""))
        with self.path.open("ab") as stream:
            stream.write(_cell_text(cell, rows).encode())
            stream.flush()
            os.fsync(stream.fileno())
        self._rows[cell] = rows

    def metrics(self, cell):
        """Return the numbers of a finished cell by name, its seconds included."""
        return {name: value for name, value, _ in self._rows[cell]}

    def note(self, cell):
        """Return the note of a finished cell."""
        return self._rows[cell][0][2]

    def arrays(self, cell):
        """Return the arrays of a finished cell by name."""
        with np.load(self._array_path(cell)) as stored:
            return dict(stored)

    def cells(self, experiment):
        """Return the finished cells of one kind, in the order in which they were finished."""
        return [cell for cell in self._rows if cell.experiment == experiment]

    def _array_path(self, cell):
        folder = self.folder / "arrays"
        folder.mkdir(exist_ok=True)
        return folder / f"{cell.file_name}.npz"


def _cell_text(cell, rows):
    # repr keeps every digit of a float, so reading gives back what was written.
    return _as_text([(*cell, name, repr(value), note) for name, value, note in rows])


def _as_text(rows):
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def _replace(path, content):
    """Write a file whole or not at all."""
    remove_leftovers(path)
    with atomic_write(path) as stream:
        stream.write(content)
