"""Forty tables as people export them: read right, or refused with a remedy that works.

    python benchmarks/messy.py

Every table holds the same numbers, written in another way. A table that is not read right at once
gets what the message or the note says: the options named there, or the change of the file that the
message asks for. The last line counts the tables that ended right.
"""

import csv
import io
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from mnpca.cli.fit import load_table
from mnpca.io import DataError

N, P = 12, 4
VALUES = (np.random.default_rng(0).normal(size=(N, P)) * [2000, 30, 5, 4000]).round(2)
ROWS = [f"sample {i}" for i in range(N)]
COLUMNS = ["length", "width", "depth", "mass"]
FRAME = pd.DataFrame(VALUES, index=ROWS, columns=COLUMNS)
HOLE = FRAME.mask((FRAME.index == "sample 4").reshape(-1, 1) & (FRAME.columns == "width"))


@dataclass
class Case:
    """A table: how it is written, what it means, and what a person says or does about it."""

    name: str
    content: bytes
    ending: str = "csv"
    meaning: pd.DataFrame = field(default_factory=lambda: FRAME)
    said: dict = field(default_factory=dict)  # options that a person passes from the start
    choice: str | None = None  # which of two offered options is meant
    asked: str | None = None  # words with which a message asks for `edit`
    edit: object = None


def text(frame=FRAME, *, index="name", encoding="utf-8", end="\n", form=str, **options):
    """Return a frame as CSV; `form` writes the cells."""
    written = frame.map(lambda x: "" if x != x else form(x))
    options = {"index_label": index, "index": index is not None, "lineterminator": end} | options
    return written.to_csv(**options).encode(encoding)


def european(x):
    return f"{x:,.2f}".translate(str.maketrans(",.", ".,"))


def comma(x):
    return f"{x:.2f}".replace(".", ",")


def without_lines(*numbers):
    """Return an edit that deletes lines, counted from 0 or from the end."""

    def edit(path):
        lines = path.read_text().splitlines()
        for number in sorted((n % len(lines) for n in numbers), reverse=True):
            del lines[number]
        path.write_text("\n".join(lines) + "\n")

    return edit


def saved_as_csv(path):
    path.with_suffix(".csv").write_bytes(text())
    return path.with_suffix(".csv")


def inserted(line, at):
    lines = text().decode().splitlines()
    lines.insert(at % (len(lines) + 1), line)
    return ("\n".join(lines) + "\n").encode()


def sheet(rows):
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("notes").append(["measured in May"])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def from_r():
    return FRAME.to_csv(sep=" ", quoting=csv.QUOTE_NONNUMERIC).removeprefix('"" ').encode()


def genes():
    many = pd.DataFrame(np.random.default_rng(1).normal(size=(120, 8)).round(3))
    many.columns = [f"patient {j}" for j in range(8)]
    return many.set_axis([f"ABC{i}" for i in range(120)])


def cases():
    numbered = FRAME.set_axis([str(i) for i in range(101, 101 + N)])
    rows = [["", *COLUMNS], *([r, *v] for r, v in zip(ROWS, VALUES.tolist(), strict=True))]
    unnamed = FRAME.set_axis([str(i + 1) for i in range(N)])
    umlauts = FRAME.rename(columns={"length": "Länge", "mass": "Größe"})
    coded = FRAME.mask(np.arange(N * P).reshape(N, P) % 7 == 0)
    small = (FRAME / 1000).round(5)
    limited = small.assign(depth=0.01)
    limited["depth"] = np.where(np.arange(N) < 3, 0.01, 0.02 + np.arange(N) / 100)
    with_dates = FRAME.assign(day="03.05.2021", group=["a", "b"] * (N // 2))
    return [
        Case("pandas, with its index", FRAME.to_csv().encode()),
        Case("R, write.table", from_r(), "txt"),
        Case("tabs and Windows line ends", text(sep="\t", end="\r\n"), "tsv"),
        Case("old Macintosh line ends", text(end="\r")),
        Case("bars between the columns", text(sep="|"), "txt"),
        Case("every cell in quotation marks", text(quoting=csv.QUOTE_ALL)),
        Case("spaces around the cells", text(form=lambda x: f"  {x}  ")),
        Case("byte order mark", text(encoding="utf-8-sig")),
        Case("Unicode text of a spreadsheet", text(sep="\t", encoding="utf-16"), "txt"),
        Case("UTF-16 without a mark", text(encoding="utf-16-le")),
        Case("umlauts in Latin-1", text(umlauts, encoding="latin-1"), meaning=umlauts),
        Case("European spreadsheet", text(sep=";", form=comma)),
        Case("decimal commas in quotation marks", text(form=comma)),
        Case("decimal commas without a header", text(index=None, header=False, sep=";", form=comma),
             meaning=unnamed.set_axis(list("1234"), axis=1)),
        Case("thousands, 1,234.50", text(form=lambda x: f"{x:,.2f}")),
        Case("thousands, 1.234,50", text(sep=";", form=european)),
        Case("thousands, 1'234.50", text(form=lambda x: f"{x:,.2f}".replace(",", "'"))),
        Case("thousands, 1 234,50",
             text(sep=";", form=lambda x: european(x).replace(".", "\u202f"))),
        Case("whole thousands, 1,234", text(FRAME.round(), form=lambda x: f"{x:,.0f}"),
             meaning=FRAME.round(), choice="strip"),
        Case("percent", text(form=lambda x: f"{x}%")),
        Case("prices", text(FRAME.abs(), form=lambda x: f"${x:,.2f}"), meaning=FRAME.abs()),
        Case("units in the cells", text(form=lambda x: f"{x} mg")),
        Case("typographic minus signs", text(form=lambda x: str(x).replace("-", "\u2212"))),
        Case("a word for missing", text(HOLE.fillna("n.d.")), meaning=HOLE),
        Case("a dash for missing", text(HOLE.fillna("-")), meaning=HOLE),
        Case("an error of a spreadsheet", text(HOLE.fillna("#DIV/0!")), meaning=HOLE),
        Case("-9999 for missing", text(small.where(coded.notna(), -9999)),
             meaning=small.where(coded.notna())),
        Case("below the limit of detection",
             text(limited.assign(depth=[f"<{x}" if x == 0.01 else x for x in limited.depth])),
             meaning=limited, choice="strip"),
        Case("empty rows, at the end too", inserted(",,,,", 6) + b",,,,\n,,,,\n\n"),
        Case("sep= and a mark after the last cell",
             b"sep=;\r\n" + text(sep=";", end=";\r\n")),
        Case("comments above the table", b"# exported, May\n#\n" + text()),
        Case("a title above the table", b"Measurements of May\n\n" + text(),
             asked="Delete what stands above", edit=without_lines(0, 1)),
        Case("units below the header", inserted("id,cm,cm,cm,kg", 1),
             asked="row 2 .*holds units, delete it", edit=without_lines(1)),
        Case("the header again, in the middle", inserted("name,length,width,depth,mass", 7),
             asked="row 8 .*repeats the column names; delete it", edit=without_lines(7)),
        Case("a line of totals", inserted("Total," + ",".join(map(str, VALUES.sum(axis=0))), -1),
             asked="last row is called 'Total'.*delete it", edit=without_lines(-1)),
        Case("identifiers that count up", text(numbered, index="patient"), meaning=numbered,
             choice="index"),
        Case("a constant column, dates and groups", text(with_dates.assign(flat=3.5)),
             said={"labels": "group"}),
        Case("genes in rows", text(genes()), meaning=genes().T),
        Case("a sheet with an empty row above", sheet([[], *rows]), "xlsx"),
        Case("a sheet of an old program", b"\xd0\xcf\x11\xe0", "xls",
             asked="save it as CSV", edit=saved_as_csv),
    ]  # fmt: skip


def options_in(message, choice):
    """Return the options that a message or note names, as arguments of `load_table`."""
    message = message.partition("; or leave the column out")[0]
    found = {}
    for flag in ("transpose", "drop-constant"):
        if f"--{flag}" in message:
            found[flag.replace("-", "_")] = True
    values = r"('[^']*'|\"[^\"]*\"|\S+)"
    for option, value in re.findall(rf"--(index|decimal|strip|na|drop) {values}", message):
        word = shlex.split(value)[0].rstrip(";") if value != "," else ","
        if choice is not None and option != choice:
            continue
        if option in ("index", "decimal"):
            found[option] = word
        else:
            found[option] = (*found.get(option, ()), word)
    return found


def is_right(table, meaning):
    names = list(meaning.index) if table.row_names is not None else None
    return (
        table.values.shape == meaning.shape
        and np.allclose(table.values, meaning.to_numpy(dtype=float), equal_nan=True)
        and (names is None or table.row_names == names)
        and (table.column_names is None or table.column_names == list(meaning.columns))
    )


def outcome(case, folder):
    """Return how a table ended ("read", or what helped), None if it did not end right."""
    path = Path(folder) / f"table.{case.ending}"
    path.write_bytes(case.content)
    options, helped = dict(case.said), []
    for _ in range(5):
        try:
            table = load_table(path, **options)
            if is_right(table, case.meaning):
                return "; ".join(helped) or "read"
            messages = table.notes
        except DataError as error:
            messages = [str(error)]
        new, asked = {}, False
        for message in messages:
            new |= options_in(message, case.choice)
            asked |= case.asked is not None and re.search(case.asked, message) is not None
        if asked:
            path = case.edit(path) or path
            helped.append("the file was changed as the message says")
            continue
        if not new or all(options.get(name) == value for name, value in new.items()):
            return None
        for name, value in new.items():
            tuples = isinstance(value, tuple)
            options[name] = (*options.get(name, ()), *value) if tuples else value
        helped.append(" ".join(f"--{name} {value}" for name, value in new.items()))
    return None


def main():
    ended, all_cases = 0, cases()
    for case in all_cases:
        with tempfile.TemporaryDirectory() as folder:
            result = outcome(case, folder)
        ended += result is not None
        print(f"{case.name:40} {result or 'WRONG'}")
    print(f"{ended} of {len(all_cases)}")
    return 0 if ended == len(all_cases) else 1


if __name__ == "__main__":
    sys.exit(main())
