"""Every format gives the same matrix with the same names; what cannot be read says why.

`tests/reliability/test_messy_tables.py` has the tables as people export them.
"""

import gzip
import os
import sys
import zipfile
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from mnpca.io import DataError, Table, read_table, write_csv

VALUES = np.random.default_rng(0).normal(size=(6, 4))
ROWS = [f"s{i}" for i in range(6)]
COLUMNS = ["a", "b", "b", "d = 1"]
GROUPS = list("xxyyzz")
NAN = np.nan


def frame(columns=COLUMNS):
    return pd.DataFrame(VALUES, index=ROWS, columns=columns)


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_h5ad(X, path):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(X, obs=pd.DataFrame({"group": GROUPS}, index=ROWS))
    adata.var_names = list("abcd")
    adata.write_h5ad(path)


def write_npz(path, **arrays):
    names = {"row_names": np.array(ROWS), "column_names": np.array(list("abcd"))}
    np.savez(path, group=np.array(GROUPS), **names, **arrays)


def write_sparse_npz(path):
    sp.save_npz(path, sp.csr_array(VALUES))
    with np.load(path) as parts:
        write_npz(path, **parts)


def write_parquet(path):
    pytest.importorskip("pyarrow")
    frame(list("abcd")).assign(group=GROUPS, when="2020-01-01").to_parquet(path)


def write_sheet(path):
    pytest.importorskip("openpyxl")
    dated = frame(list("abcd")).assign(group=GROUPS, when=pd.Timestamp("2020-01-01"))
    dated.to_excel(path, startrow=2)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.csv", lambda path: frame(list("abcd")).assign(group=GROUPS, when="x").to_csv(path)),
        ("a.csv.gz", lambda path: frame(list("abcd")).assign(group=GROUPS).to_csv(path)),
        ("a.parquet", write_parquet),
        ("a.xlsx", write_sheet),
        ("a.npz", lambda path: write_npz(path, X=VALUES)),
        ("sparse.npz", write_sparse_npz),
        ("a.h5ad", lambda path: write_h5ad(VALUES, path)),
        ("sparse.h5ad", lambda path: write_h5ad(sp.csr_matrix(VALUES), path)),
    ],
)
def test_every_format_keeps_names_and_labels(tmp_path, name, write):
    write(tmp_path / name)
    table = read_table(tmp_path / name, labels="group")
    np.testing.assert_allclose(table.values, VALUES, rtol=1e-14)
    assert (table.row_names, table.column_names) == (ROWS, list("abcd"))
    assert (table.labels.tolist(), table.label_name) == (GROUPS, "group")
    assert table.notes in ((), ("1 column without numbers left out: 'when'",))


def test_arrays_without_names(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    (tmp_path / "b.npy.gz").write_bytes(gzip.compress((tmp_path / "a.npy").read_bytes()))
    scipy.io.mmwrite(tmp_path / "c.mtx", sp.coo_array(VALUES), precision=17)
    scipy.io.mmwrite(tmp_path / "d.mtx", VALUES, precision=17)
    for name in ("a.npy", "b.npy.gz", "c.mtx", "d.mtx"):
        np.testing.assert_allclose(read_table(tmp_path / name).values, VALUES, rtol=1e-14)
    square = VALUES[:4] + VALUES[:4].T
    for number, matrix in enumerate((square, np.triu(square, 1) - np.triu(square, 1).T)):
        for kind in (np.asarray, sp.coo_array):  # only one triangle is stored
            scipy.io.mmwrite(tmp_path / f"{number}.mtx", kind(matrix), precision=17)
            read = read_table(tmp_path / f"{number}.mtx").values
            np.testing.assert_allclose(read, matrix, rtol=1e-14)


@pytest.mark.parametrize("key", ["row_names", "column_names", "group"])
def test_names_that_do_not_fit_are_refused(tmp_path, key):
    np.savez(tmp_path / "a.npz", X=VALUES, **{key: np.array(ROWS[:3])})
    with pytest.raises(DataError, match=f"'{key}' does not have one entry for each of the"):
        read_table(tmp_path / "a.npz", labels="group" if key == "group" else None)
    length = 4 if key == "column_names" else 6
    np.savez(tmp_path / "b.npz", X=VALUES, **{key: np.array(ROWS[:length], dtype=object)})
    with pytest.raises(DataError, match=rf"'{key}' holds Python objects; save it with .astype"):
        read_table(tmp_path / "b.npz", labels="group" if key == "group" else None)


HEADERLESS = ("no header: the first line is data",)
#: What a text file holds: the text, its values, names of rows and columns.
TEXTS = {
    "no header": ("1,2\n3,4\n", [[1, 2], [3, 4]], None, None),
    "a gap in a first line of data": ("1,,3\n4,5,6\n", [[1, NAN, 3], [4, 5, 6]], None, None),
    "a word for a gap there": ("1,NA,nan\n4,5,6\n", [[1, NAN, NAN], [4, 5, 6]], None, None),
    "three numbers in no order": ("0,1,3\n4,5,6\n", [[0, 1, 3], [4, 5, 6]], None, None),
    "columns counted from 0": ("0,1,2\n4,5,6\n", [[4, 5, 6]], None, ["0", "1", "2"]),
    "columns counted from 1": ("1,2,3\n4,5,6\n", [[4, 5, 6]], None, ["1", "2", "3"]),
    "as pandas": (",0,1\n0,1.5,2\n1,3,4\n", [[1.5, 2], [3, 4]], ["0", "1"], ["0", "1"]),
    "as R": ('"a"\t"b"\n"x"\t1\t2\n"y"\t3\t4\n', [[1, 2], [3, 4]], ["x", "y"], ["a", "b"]),
    "names of rows": ("\ufeffgene,a\nTP53,1\n=cmd,3\n", [[1], [3]], ["TP53", "=cmd"], ["a"]),
    "numbers with letters name rows": ("well,a\n1A,2\n2A,3\n", [[2], [3]], ["1A", "2A"], ["a"]),
    "missing values": ("a,b\n1,\nNA,2\n", [[1, NAN], [NAN, 2]], None, ["a", "b"]),
    "marks inside quoted names": ('"l, cm";"a, b"\n1;2\n', [[1, 2]], None, ["l, cm", "a, b"]),
    "lines inside a name": ('"w\n(kg)",b\n1,2\n3,4\n', [[1, 2], [3, 4]], None, ["w (kg)", "b"]),
    "marks after the last cell": ("a,b,,\n1,2,,\n3,4,,\n", [[1, 2], [3, 4]], None, ["a", "b"]),
    "those of the data only": ("a,b\n1,2,,\n3,4,,\n", [[1, 2], [3, 4]], None, ["a", "b"]),
    "and without a header": ("1,2,,\n3,4,,\n", [[1, 2], [3, 4]], None, None),
    "a nameless column": ("a,b,,\n1,2,,5\n", [[1, 2, NAN, 5]], None, ["a", "b", "", ""]),
    "repeated names": ("a,a\n1,2\n3,4\n", [[1, 2], [3, 4]], None, ["a", "a"]),
    "huge exponents": ("a,b\n1,1E7736976014\n2,-1.48E77369760140\n", [[1, np.inf], [2, -np.inf]],
                       None, ["a", "b"]),
    "tiny exponents": ("a,b\n1,0.1e-4294967290\n2,3\n", [[1, 0], [2, 3]], None, ["a", "b"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts(tmp_path, name):
    text, values, rows, columns = TEXTS[name]
    table = read_table(write(tmp_path / "a.csv", text))
    np.testing.assert_array_equal(table.values, values)
    assert (table.row_names, table.column_names) == (rows, columns)
    assert table.notes == (HEADERLESS if columns is None else ())


def test_rows_are_counted_as_the_file_does(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "a,b\n1,2\n\n,\n3,4\n,\n"))
    assert table.values.tolist() == [[1, 2], [3, 4]]
    assert table.row_numbers.tolist() == [2, 5]
    assert table.notes == ("2 empty rows left out, first row 3 of the file",)
    table = read_table(write(tmp_path / "a.csv", '"weight\n(kg)",b\n1,2\n3,4\n'))
    assert table.row_numbers.tolist() == [3, 4]


@pytest.mark.parametrize("end", ["\r", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1"])
def test_encodings_and_line_ends_are_recognized(tmp_path, encoding, end):
    text = end.join(["näme,größe,b", "ä,1,2", "ö,3,4", ""])
    table = read_table(write(tmp_path / "a.csv", text.encode(encoding)))
    assert (table.row_names, table.column_names) == (["ä", "ö"], ["größe", "b"])
    assert table.values.tolist() == [[1, 2], [3, 4]]
    assert bool(table.notes) == (encoding == "latin-1")  # it is a guess, and told


def test_a_named_encoding_is_used_or_refused(tmp_path):
    path = write(tmp_path / "a.csv", "имя,b\nя,2\nю,3\n".encode("cp1251"))
    assert read_table(path, encoding="cp1251").row_names == ["я", "ю"]
    with pytest.raises(DataError, match="'klingon' is not known"):
        read_table(path, encoding="klingon")
    with pytest.raises(DataError, match="not text in the encoding 'utf-8'"):
        read_table(path, encoding="utf-8")


def test_numbers_are_read_to_the_last_digit(tmp_path):
    values = np.random.default_rng(0).standard_normal((50, 3)) * 10.0 ** np.arange(-5, 145, 50)
    write_csv(tmp_path / "a.csv", list("abc"), values.tolist())
    assert np.array_equal(read_table(tmp_path / "a.csv").values, values)


def test_numbers_of_every_type(tmp_path, monkeypatch):
    """A frame may hold any object; Parquet files and sheets do."""
    cells = {
        "a": [1, 2.5, True, None],
        "b": ["1", " 2e3 ", "-inf", None],
        "c": pd.Series([Fraction(1, 2), np.float32(3), np.int8(-1), 10**400], dtype=object),
        "d": ["1_000", "x", "y", "z"],
        "e": pd.Categorical([3, 4, 3, 4]),
        "f": [Decimal("1.5"), Decimal(2), Decimal(3), None],
        "g": [b"1", b"2", 1j, object()],
    }
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": [1.0]}).to_parquet(tmp_path / "a.parquet")
    frame = pd.DataFrame(cells).set_axis(list("uvwx"))
    monkeypatch.setattr(pd, "read_parquet", lambda path: frame)
    with pytest.raises(DataError, match="column 'c' mixes numbers and text: 1 cell is not"):
        read_table(tmp_path / "a.parquet")
    frame.loc["x", "c"] = 7
    table = read_table(tmp_path / "a.parquet")
    assert table.column_names == ["a", "b", "c", "e", "f"]
    assert table.notes == ("2 columns without numbers left out: 'd', 'g'",)
    np.testing.assert_array_equal(
        table.values.T,
        [
            [1, 2.5, 1, NAN],
            [1, 2000, -np.inf, NAN],
            [0.5, 3, -1, 7],
            [3, 4, 3, 4],
            [1.5, 2, 3, NAN],
        ],
    )


WRONG = {
    "empty.csv": ("", "empty"),
    "header.csv": ("a,b\n", "no rows"),
    "junk.csv": (b"\x00\x01\x02" * 100, "not a text file"),
    "no_letters.csv": (b"a,b\n\x81\x8d,2\n", "name it with --encoding"),
    "ragged.csv": ("a,b\n1,2\n1,2,3,4\n", "not a table"),
    "header_short.csv": ("a,b\n1,2,3,4\n", "not a table"),
    "header_long.csv": ("a,b,c\n1,2\n", "3 column names, and the first row has 2 cells"),
    "mixed.csv": ("a,b\n1,1e4294967000\n2,x\n", "mixes numbers and text"),
    "text.csv": ("a,b\nu,v ± 1\nw,x ± 2\n", "no column holds numbers: 'b' begins with 'v ± 1'"),
    "open_name.csv": ('"a\nb,c\n1,2\n', "not closed"),
    "open_cell.csv": ('a,b\n1,2\n3,"4\n5,6\n', "the quotation mark in row 3 is never closed"),
    "blank.csv": ("\n\n\n", "first lines are empty"),
    "wide.csv": (",".join("c" * 100_000) + "\n", "at most 50,000"),
    "brackets.csv": ("a,b\n(1.5),2\n", "brackets only mark a number; if they mean a negative one"),
    "minus.csv": ("a,b\n1.5-,2\n3,4\n", "Write the minus sign before the number"),
    "fortran.csv": ("a,b\n1.5D+03,2\n2.5D+03,4\n", "Write the exponents with E"),
    "note.csv": ("a,b\n1,2\n3,4\nSource: lab 3,\n", "if row 4 is a note below the table, delete"),
    "india.csv": ('a,b\n"12,34,567.5",2\n"7,89,012",4\n', "--strip , to read numbers such as"),
    "dash.csv": ('a,b\n"1,234.5",2\n–,4\n', "--strip , to .*, and --na '–' if this stands for"),
    "share.csv": ("share,a\n1%,2\n2%,3\n", "--strip % to read cells such as '1%'"),
    "page.csv": ("<html><table>\n<tr>\n", "HTML or XML; open it in a spreadsheet and save it"),
    "json.csv": ('[{"a": 1},\n {"a": 2}]\n', "JSON; save it as CSV"),
    "zipped.csv": (gzip.compress(b"a,b\n1,2\n"), r"a gzipped file; add \.gz to its name"),
    "zip.csv": (b"PK\3\4", "a spreadsheet or another zip archive; give it"),
    "sheet.xlsx": ("PK", "cannot be read as a xlsx file|pip install"),
    "sheet.xls": ("PK", "save it as CSV"),
    "junk.npy": (b"junk" * 9, "not an NPY"),
    "junk.npz": (b"junk", "zip"),
    "junk.mtx": (b"junk", "mtx|Matrix Market"),
    "junk.csv.gz": (b"junk", "gzip"),
    "cut.csv.gz": (gzip.compress(b"a,b\n1,2\n" * 1000)[:-20], "cannot be read"),
    "junk.parquet": (os.urandom(200), "cannot be read|pip install"),
    "junk.h5ad": (os.urandom(200), "cannot be read|pip install"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_say_why_in_one_line(tmp_path, name):
    content, reason = WRONG[name]
    with pytest.raises(DataError, match=reason) as caught:
        read_table(write(tmp_path / name, content))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


MARKET = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.5\n"


@pytest.mark.parametrize("line", ["2 2 -1.48E7736976014E-2", "3 1 1", "1.5 1 1", "0 1 1", ""])
def test_damaged_matrix_market_files(tmp_path, line):
    with pytest.raises(DataError, match=r"Matrix Market|outside the matrix|promises 2 entries"):
        read_table(write(tmp_path / "a.mtx", MARKET + line + "\n"))


def test_arrays_of_the_wrong_kind(tmp_path):
    for number, (array, reason) in enumerate(
        [
            (np.zeros(3), "dimensions"),
            (np.zeros((2, 2, 2)), "dimensions"),
            (np.zeros((2, 2), dtype=complex), "complex"),
            (np.array([["a", "b"]]), "real numbers"),
        ]
    ):
        np.save(tmp_path / f"{number}.npy", array)
        with pytest.raises(DataError, match=reason):
            read_table(tmp_path / f"{number}.npy")
    np.save(tmp_path / "object.npy", np.array([[{}, 1]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="npy"):
        read_table(tmp_path / "object.npy")
    np.savez(tmp_path / "two.npz", first=np.eye(2), second=np.eye(3))
    with pytest.raises(DataError, match="which matrix"):
        read_table(tmp_path / "two.npz")


def test_a_header_that_promises_too_much_is_refused_unread(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }"
    header = header.ljust(117) + b"\n"
    npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy)
    write(tmp_path / "a.npy", npy)
    write(tmp_path / "a.mtx", MARKET.replace("2 2 2", "1000000 1000000 1"))
    for name in ("a.npy", "a.npz", "a.mtx"):
        with pytest.raises(DataError, match="at most"):
            read_table(tmp_path / name)


def test_endless_lines_and_gzip_bombs_end_early(tmp_path, monkeypatch):
    monkeypatch.setattr("mnpca.io.read.MAX_LINE_BYTES", 2**21)
    with pytest.raises(DataError, match="longer than 2 MB"):
        read_table(write(tmp_path / "line.csv", b"1" * (4 * 2**20)))
    monkeypatch.setattr("mnpca.io.read.MAX_FILE_BYTES", 2**21)
    with pytest.raises(DataError, match="unzips to more"):
        read_table(write(tmp_path / "bomb.csv.gz", gzip.compress(b"1,2\n" * 2**20)))
    monkeypatch.setattr("mnpca.io._table.MAX_CELLS", 1000)
    with pytest.raises(DataError, match="at most 1,000 numbers"):
        read_table(write(tmp_path / "long.csv", b"1,2\n" * 10_000))


def test_options_that_do_not_fit(tmp_path):
    frame().assign(g=GROUPS).to_csv(tmp_path / "a.csv")
    np.save(tmp_path / "a.npy", VALUES)
    for name, options, message in (
        ("a.csv", {"labels": "color"}, "no column 'color'"),
        ("a.csv", {"labels": "b"}, "2 columns are called"),
        ("a.csv", {"decimal": "'"}, "a point or a comma"),
        ("a.csv", {"strip": ("",)}, "needs a text"),
        ("a.npy", {"labels": "color"}, "no named columns"),
        ("a.npy", {"index": "x"}, "--index is for tables with named columns"),
        ("a.npy", {"encoding": "x"}, "--encoding is for tables with named columns"),
        ("none.csv", {}, "no such file"),
        (".", {}, "is a folder"),
    ):
        with pytest.raises(DataError, match=message):
            read_table(tmp_path / name, **options)
    with pytest.raises(DataError, match="--transpose"):
        read_table(tmp_path / "a.csv", labels="g").transposed()


def test_repeated_column_names_are_numbered_and_told():
    table = Table(np.zeros((1, 5)), column_names=["a", "b", "a", "a.2", "a"])
    distinct = table.with_distinct_columns()
    assert distinct.column_names == ["a", "b", "a.3", "a.2", "a.4"]
    assert "'a'" in distinct.notes[0]
    assert distinct.with_distinct_columns() is distinct


def test_missing_words_in_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": [1.0, -999, 3], "b": [1, 2, 3]}).to_parquet(tmp_path / "a.parquet")
    values = read_table(tmp_path / "a.parquet", na=("-999",)).values
    np.testing.assert_array_equal(values, [[1, 1], [NAN, 2], [3, 3]])


def test_text_becomes_indicators_on_request(tmp_path):
    path = write(tmp_path / "a.csv", "name,age,batch\nu,1,x\nv,2,y\nw,3,z\n")
    table = read_table(path, categories=True)
    assert table.column_names == ["age", "batch=y", "batch=z"]
    assert table.values.tolist() == [[1, 0, 0], [2, 1, 0], [3, 0, 1]]


def test_sheets_without_cells_or_without_the_package(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    pd.DataFrame().to_excel(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match="is empty"):
        read_table(tmp_path / "a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"pip install 'mnpca\[excel\]'; or save the sheet as CSV"):
        read_table(tmp_path / "a.xlsx")


def test_marks_of_thousands_leave_dates_and_decimals_alone(tmp_path):
    text = "name;a;day\nu;1.234,5;03.05.2021\nv;12,5;04.05.2021\nw;1.234.567,5;05.05.2021\n"
    table = read_table(write(tmp_path / "a.csv", text), decimal=",", strip=(".",))
    assert table.values.ravel().tolist() == [1234.5, 12.5, 1234567.5]
    assert table.notes == ("1 column without numbers left out: 'day'",)
    path = write(tmp_path / "b.csv", 'a,b\n"12,34,567.5","1,23"\n"-7,89,012","1,234"\n')
    with pytest.raises(DataError, match=r"column 'b'.*'1,23'"):  # that is no thousand
        read_table(path, strip=(",",))
    values = read_table(path, strip=(",",), drop=("b",)).values
    np.testing.assert_array_equal(values, [[1234567.5], [-789012]])
