"""CSV files that a spreadsheet can open without running anything."""

import csv
import io

from mnpca.persistence import atomic_write

#: How a cell begins that spreadsheets read as a formula, in some countries in full width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def safe_cell(text):
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
    if not text.startswith(_FORMULA):
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
