"""CSV files that a spreadsheet can open without running anything."""

import csv
import io

from mnpca.persistence import atomic_write


def safe_cell(text):
    """Return a name as a cell that no spreadsheet takes for a formula.

    A cell that begins with ``= + - @``, a tab or a carriage return gets an apostrophe in front,
    unless it is a plain number.

    Examples
    --------
    >>> from mnpca.io import safe_cell
    >>> safe_cell("=1+1"), safe_cell("-0.5"), safe_cell("gene")
    ("'=1+1", '-0.5', 'gene')
    """
    text = str(text)
    if text[:1] not in ("=", "+", "-", "@", "\t", "\r"):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text


def write_csv(path, header, rows):
    """Write rows of names and numbers; names are made safe, numbers keep all their digits.

    The file appears complete or not at all.
    """
    with atomic_write(path) as binary:
        out = io.TextIOWrapper(binary, "utf-8", errors="replace", newline="")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([safe_cell(cell) for cell in header])
        for row in rows:
            writer.writerow([safe_cell(cell) if isinstance(cell, str) else cell for cell in row])
        out.flush()
        out.detach()  # the file is closed where it was opened, after it reached the disk
