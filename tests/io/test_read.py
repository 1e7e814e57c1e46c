"""Every format gives the same matrix with the same names; what cannot be read says why."""

import gzip
import os
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from mnpca.io import DataError, Table, read_table, write_csv
from mnpca.io import _table as limits
from mnpca.io._table import Reading, table_from_frame

VALUES = np.random.default_rng(0).normal(size=(6, 4))
ROWS = [f"s{i}" for i in range(6)]
COLUMNS = ["a", "b", "b", "d = 1"]
GROUPS = list("xxyyzz")


def frame():
    return pd.DataFrame(VALUES, index=ROWS, columns=COLUMNS)


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_text_keeps_names_labels_and_repeated_columns(tmp_path):
    table = frame().assign(group=GROUPS, when="2020-01-01")
    for name, sep in (("a.csv", ","), ("a.tsv", "\t"), ("a.txt", ";"), ("a.csv.gz", ",")):
        table.to_csv(tmp_path / name, sep=sep)
        read = read_table(tmp_path / name, labels="group")
        np.testing.assert_allclose(read.values, VALUES)
        assert read.row_names == ROWS
        assert read.column_names == COLUMNS
        assert read.labels.tolist() == GROUPS
        assert read.notes == ("1 column without numbers left out: 'when'",)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    table = frame()
    table.columns = ["a", "b", "c", "d"]
    table.assign(group=GROUPS).to_parquet(tmp_path / "a.parquet")
    read = read_table(tmp_path / "a.parquet", labels="group")
    np.testing.assert_array_equal(read.values, VALUES)
    assert (read.row_names, read.column_names) == (ROWS, ["a", "b", "c", "d"])
    assert read.labels.tolist() == GROUPS


def test_h5ad_dense_and_sparse(tmp_path):
    anndata = pytest.importorskip("anndata")
    table = frame()
    table.columns = ["a", "b", "c", "d"]
    for X in (VALUES, sp.csr_matrix(VALUES)):
        adata = anndata.AnnData(X, obs=pd.DataFrame({"group": GROUPS}, index=ROWS))
        adata.var_names = list("abcd")
        adata.write_h5ad(tmp_path / "a.h5ad")
        read = read_table(tmp_path / "a.h5ad", labels="group")
        np.testing.assert_array_equal(read.values, VALUES)
        assert (read.row_names, read.column_names) == (ROWS, list("abcd"))
        assert read.labels.tolist() == GROUPS


def test_arrays(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    (tmp_path / "b.npy.gz").write_bytes(gzip.compress((tmp_path / "a.npy").read_bytes()))
    np.savez(tmp_path / "c.npz", X=VALUES, row_names=np.array(ROWS), group=np.array(GROUPS))
    sp.save_npz(tmp_path / "d.npz", sp.csr_array(VALUES))
    scipy.io.mmwrite(tmp_path / "e.mtx", sp.coo_array(VALUES), precision=17)
    for name in ("a.npy", "b.npy.gz", "c.npz", "d.npz", "e.mtx"):
        np.testing.assert_allclose(read_table(tmp_path / name).values, VALUES, rtol=1e-14)
    read = read_table(tmp_path / "c.npz", labels="group")
    assert read.row_names == ROWS
    assert read.labels.tolist() == GROUPS


def test_names_and_labels_of_sparse_archives(tmp_path):
    sp.save_npz(tmp_path / "plain.npz", sp.csr_array(VALUES))
    with np.load(tmp_path / "plain.npz") as parts:
        np.savez(tmp_path / "a.npz", **parts, row_names=np.array(ROWS), group=np.array(GROUPS))
    read = read_table(tmp_path / "a.npz", labels="group")
    np.testing.assert_array_equal(read.values, VALUES)
    assert read.row_names == ROWS
    assert (read.labels.tolist(), read.label_name) == (GROUPS, "group")


@pytest.mark.parametrize("key", ["row_names", "column_names", "group"])
def test_names_that_do_not_fit_are_refused(tmp_path, key):
    np.savez(tmp_path / "a.npz", X=VALUES, **{key: np.array(ROWS[:3])})
    with pytest.raises(DataError, match=f"'{key}' does not have one entry for each of the"):
        read_table(tmp_path / "a.npz", labels="group" if key == "group" else None)
    length = 4 if key == "column_names" else 6
    np.savez(tmp_path / "b.npz", X=VALUES, **{key: np.array(ROWS[:length], dtype=object)})
    with pytest.raises(DataError, match=rf"'{key}' holds Python objects; save it with .astype"):
        read_table(tmp_path / "b.npz", labels="group" if key == "group" else None)


def test_marks_inside_quoted_names_separate_nothing(tmp_path):
    text = '"length, cm";"width, cm";"a, b, c"\n1;2;3\n4;5;6\n'
    table = read_table(write(tmp_path / "a.csv", text))
    assert table.column_names == ["length, cm", "width, cm", "a, b, c"]
    assert table.values.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_text_without_header_and_as_r_writes_it(tmp_path):
    plain = write(tmp_path / "plain.csv", "1,2\n3,4\n")
    assert read_table(plain).values.tolist() == [[1, 2], [3, 4]]
    assert read_table(plain).column_names is None
    from_r = write(tmp_path / "r.tsv", '"a"\t"b"\n"x"\t1\t2\n"y"\t3\t4\n')
    assert read_table(from_r).row_names == ["x", "y"]
    assert read_table(from_r).column_names == ["a", "b"]


@pytest.mark.parametrize("gap", ["", "NA", "nan", "NULL"])
def test_a_first_line_with_a_gap_is_no_header(tmp_path, gap):
    table = read_table(write(tmp_path / "a.csv", f"1,{gap},3\n4,5,6\n"))
    np.testing.assert_array_equal(table.values, [[1, np.nan, 3], [4, 5, 6]])
    assert table.column_names is None


def test_a_first_line_that_begins_empty_is_the_header_as_pandas_writes_it(tmp_path):
    pd.DataFrame([[1.5, 2], [3, 4]]).to_csv(tmp_path / "a.csv")
    table = read_table(tmp_path / "a.csv")
    assert table.values.tolist() == [[1.5, 2], [3, 4]]
    assert (table.row_names, table.column_names) == (["0", "1"], ["0", "1"])


@pytest.mark.parametrize("first", [0, 1])
def test_a_first_line_that_counts_the_columns_is_the_header(tmp_path, first):
    path = tmp_path / "a.csv"
    columns = range(first, first + VALUES.shape[1])
    pd.DataFrame(VALUES, columns=columns).to_csv(path, index=False)
    read = read_table(path)
    np.testing.assert_array_equal(read.values, VALUES)
    assert read.column_names == [str(column) for column in columns]


def test_a_file_without_a_header_says_so(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("0,1,3\n4,5,6\n")
    read = read_table(path)
    assert read.values.shape == (2, 3)
    assert read.notes == ("no header: the first line is data",)


@pytest.mark.parametrize("header", ["a,b\n", "a,b,\n", "a,b,,\n", ""])
def test_separators_after_the_last_cell_are_no_columns(tmp_path, header):
    """Nor is the first column taken for row names then."""
    table = read_table(write(tmp_path / "a.csv", header + "1,2,,\n3,4,,\n"))
    assert table.values.tolist() == [[1, 2], [3, 4]]
    assert table.row_names is None
    assert table.column_names == (["a", "b"] if header else None)


def test_a_nameless_column_with_cells_stays(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "a,b,,\n1,2,,5\n3,4,,6\n"))
    assert table.column_names == ["a", "b", "", ""]
    assert table.values[:, 3].tolist() == [5, 6]


def test_first_column_of_text_names_the_rows(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "\ufeffgene,s1,s2\nTP53,1,2\n=cmd,3,4\n"))
    assert table.row_names == ["TP53", "=cmd"]
    assert table.column_names == ["s1", "s2"]


def test_empty_cells_are_missing_values(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "a,b\n1,\nNA,2\n"))
    assert np.isnan(table.values).tolist() == [[False, True], [True, False]]


#: pandas' default parser reads the first as 1e-296, and the second ends the process.
@pytest.mark.parametrize("number", ["1e4294967000", "1E7736976014", "-1.48E77369760140"])
@pytest.mark.parametrize("beside", ["2.5", "x"])
def test_exponents_beyond_all_numbers_are_no_other_numbers(tmp_path, number, beside):
    path = write(tmp_path / "a.csv", f"a,b\n1,{number}\n2,{beside}\n3,4\n")
    if beside == "x":
        with pytest.raises(DataError, match="mixes numbers and text"):
            read_table(path)
    else:
        assert np.isinf(read_table(path).values[0, 1])
    table = read_table(write(tmp_path / "b.csv", "a,b\n1,0.1e-4294967290\n2,3\n"))
    assert table.values[0, 1] == 0.0


def test_a_damaged_exponent_in_a_matrix_market_file(tmp_path):
    head = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.5\n2 2 "
    with pytest.raises(DataError, match="Matrix Market"):
        read_table(write(tmp_path / "a.mtx", head + "-1.48E7736976014E-2\n"))
    try:
        assert read_table(write(tmp_path / "b.mtx", head + "1E7736976014\n")).values[1, 1] == np.inf
    except DataError as error:  # of pandas before 3.1
        if "Matrix Market" not in str(error):
            raise


def test_numbers_are_read_to_the_last_digit(tmp_path):
    values = np.random.default_rng(0).standard_normal((50, 3)) * 10.0 ** np.arange(-5, 145, 50)
    write_csv(tmp_path / "a.csv", list("abc"), values.tolist())
    assert np.array_equal(read_table(tmp_path / "a.csv").values, values)


def test_numbers_and_text_in_columns_of_objects(tmp_path):
    from decimal import Decimal
    from fractions import Fraction

    frame = pd.DataFrame(
        {
            "a": [1, 2.5, True, None],
            "b": ["1", " 2e3 ", "-inf", None],
            "c": [Fraction(1, 2), np.float32(3), np.int8(-1), 10**400],
            "d": ["1_000", "x", "y", "z"],
            "e": pd.Categorical([3, 4, 3, 4]),
            "f": [Decimal("1.5"), Decimal(2), Decimal(3), None],
            "g": [b"1", b"2", 1j, object()],
        }
    )
    frame["c"] = frame["c"].astype(object)
    with pytest.raises(DataError, match="column 'c' mixes numbers and text: 1 cell is not"):
        table_from_frame(frame, list(frame.columns), ["r"] * 4, Reading())
    frame.loc[3, "c"] = 7
    table = table_from_frame(frame, list(frame.columns), ["r"] * 4, Reading())
    assert table.column_names == ["a", "b", "c", "e", "f"]
    np.testing.assert_array_equal(table.values[:, 0], [1, 2.5, 1, np.nan])
    np.testing.assert_array_equal(table.values[:, 1], [1, 2000, -np.inf, np.nan])
    np.testing.assert_array_equal(table.values[:, 2], [0.5, 3, -1, 7])
    np.testing.assert_array_equal(table.values[:, 3], [3, 4, 3, 4])
    np.testing.assert_array_equal(table.values[:, 4], [1.5, 2, 3, np.nan])


WRONG = {
    "empty.csv": ("", "empty"),
    "header.csv": ("a,b\n", "no rows"),
    "junk.csv": (b"\x00\x01\x02" * 100, "not a text file"),
    "no_letters.csv": (b"a,b\n\x81\x8d,2\n", "name it with --encoding"),
    "ragged.csv": ("a,b\n1,2\n1,2,3,4\n", "not a table"),
    "header_short.csv": ("a,b\n1,2,3,4\n", "not a table"),
    "mixed.csv": ("a,b\n1,2\n2,x\n", "mixes numbers and text"),
    "decimal.csv": ("a;b\n1,5;2\n2;3\n", "Pass --decimal , to read decimal commas"),
    "text.csv": ("a,b\nu,v\nw,x\n", "no column holds numbers"),
    "open_quote.csv": ('"a\nb,c\n1,2\n', "not closed"),
    "blank.csv": ("\n\n\n", "first lines are empty"),
    "wide.csv": (",".join("c" * 100_000) + "\n", "at most 50,000"),
    "sheet.xlsx": ("PK", "cannot be read as a xlsx file|pip install"),
    "sheet.xls": ("PK", "save it as CSV"),
    "junk.npy": (b"junk" * 9, "not an NPY"),
    "junk.npz": (b"junk", "zip"),
    "junk.mtx": (b"junk", "mtx|Matrix Market"),
    "junk.csv.gz": (b"junk", "gzip"),
    "cut.csv.gz": (gzip.compress(b"a,b\n1,2\n" * 1000)[:-20], "cannot be read"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_say_why_in_one_line(tmp_path, name):
    content, reason = WRONG[name]
    with pytest.raises(DataError, match=reason) as caught:
        read_table(write(tmp_path / name, content))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_optional_formats_refuse_junk(tmp_path):
    for name, package in (("a.parquet", "pyarrow"), ("a.h5ad", "anndata")):
        pytest.importorskip(package)
        with pytest.raises(DataError, match="cannot be read"):
            read_table(write(tmp_path / name, os.urandom(200)))


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
    with pytest.raises(DataError, match="at most"):
        read_table(write(tmp_path / "a.npy", npy))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy)
    with pytest.raises(DataError, match="at most"):
        read_table(tmp_path / "a.npz")
    market = "%%MatrixMarket matrix coordinate real general\n1000000 1000000 1\n1 1 1.0\n"
    with pytest.raises(DataError, match="at most"):
        read_table(write(tmp_path / "a.mtx", market))


def test_endless_lines_and_gzip_bombs_end_early(tmp_path, monkeypatch):
    monkeypatch.setattr("mnpca.io.read.MAX_LINE_BYTES", 2**21)
    with pytest.raises(DataError, match="longer than 2 MB"):
        read_table(write(tmp_path / "line.csv", b"1" * (4 * 2**20)))
    monkeypatch.setattr("mnpca.io.read.MAX_FILE_BYTES", 2**21)
    with pytest.raises(DataError, match="unzips to more"):
        read_table(write(tmp_path / "bomb.csv.gz", gzip.compress(b"1,2\n" * 2**20)))
    monkeypatch.setattr(limits, "MAX_CELLS", 1000)
    with pytest.raises(DataError, match="at most 1,000 numbers"):
        read_table(write(tmp_path / "long.csv", b"1,2\n" * 10_000))


def test_missing_label_columns_are_named(tmp_path):
    frame().to_csv(tmp_path / "a.csv")
    np.save(tmp_path / "a.npy", VALUES)
    with pytest.raises(DataError, match="no column 'color'"):
        read_table(tmp_path / "a.csv", labels="color")
    with pytest.raises(DataError, match="2 columns are called"):
        read_table(tmp_path / "a.csv", labels="b")
    with pytest.raises(DataError, match="no named columns"):
        read_table(tmp_path / "a.npy", labels="color")
    frame().assign(g=GROUPS).to_csv(tmp_path / "b.csv")
    labeled = read_table(tmp_path / "b.csv", labels="g")
    with pytest.raises(DataError, match="--transpose"):
        labeled.transposed()


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path / "none.csv")


def test_repeated_column_names_are_numbered_and_told():
    table = Table(np.zeros((1, 5)), column_names=["a", "b", "a", "a.2", "a"])
    distinct = table.with_distinct_columns()
    assert distinct.column_names == ["a", "b", "a.3", "a.2", "a.4"]
    assert "'a'" in distinct.notes[0]
    assert distinct.with_distinct_columns() is distinct


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1"])
def test_encodings_and_line_ends_are_recognized(tmp_path, encoding, end):
    text = end.join(["näme,größe,b", "ä,1,2", "ö,3,4", ""])
    table = read_table(write(tmp_path / "a.csv", text.encode(encoding)))
    assert table.column_names == ["größe", "b"]
    assert table.row_names == ["ä", "ö"]
    assert table.values.tolist() == [[1, 2], [3, 4]]
    assert bool(table.notes) == (encoding == "latin-1")  # it is a guess, and told


def test_a_named_encoding_is_used_or_refused(tmp_path):
    path = write(tmp_path / "a.csv", "имя,b\nя,2\nю,3\n".encode("cp1251"))
    assert read_table(path, encoding="cp1251").row_names == ["я", "ю"]
    with pytest.raises(DataError, match="'klingon' is not known"):
        read_table(path, encoding="klingon")
    with pytest.raises(DataError, match="not text in the encoding 'utf-8'"):
        read_table(path, encoding="utf-8")


def test_names_may_have_lines(tmp_path):
    table = read_table(write(tmp_path / "a.csv", '"weight\n(kg)",b\n1,2\n3,x\n'.replace("x", "4")))
    assert table.column_names == ["weight (kg)", "b"]
    assert table.row_numbers.tolist() == [3, 4]


def test_rows_without_a_cell_are_left_out_and_told(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "a,b\n1,2\n\n,\n3,4\n,\n"))
    assert table.values.tolist() == [[1, 2], [3, 4]]
    assert table.row_numbers.tolist() == [2, 5]
    assert table.notes == ("2 empty rows left out, first row 3 of the file",)


def test_options_that_a_format_does_not_have(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    for option in ("index", "encoding"):
        with pytest.raises(DataError, match=f"--{option} is for tables with named columns"):
            read_table(tmp_path / "a.npy", **{option: "x"})
    path = write(tmp_path / "a.csv", "a,b\n1,2\n")
    with pytest.raises(DataError, match="a point or a comma"):
        read_table(path, decimal="'")
    with pytest.raises(DataError, match="needs a text"):
        read_table(path, strip=("",))


def test_missing_words_in_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": [1.0, -999, 3], "b": [1, 2, 3]}).to_parquet(tmp_path / "a.parquet")
    values = read_table(tmp_path / "a.parquet", na=("-999",)).values
    np.testing.assert_array_equal(values, [[1, 1], [np.nan, 2], [3, 3]])


def test_text_becomes_indicators_on_request(tmp_path):
    path = write(tmp_path / "a.csv", "name,age,batch\nu,1,x\nv,2,y\nw,3,z\n")
    table = read_table(path, categories=True)
    assert table.column_names == ["age", "batch=y", "batch=z"]
    assert table.values.tolist() == [[1, 0, 0], [2, 1, 0], [3, 0, 1]]


def test_sheets(tmp_path):
    pytest.importorskip("openpyxl")
    dated = frame().set_axis(list("abcd"), axis=1).assign(when=pd.Timestamp("2020-01-01"), g=GROUPS)
    dated.to_excel(tmp_path / "a.xlsx", startrow=2)
    table = read_table(tmp_path / "a.xlsx", labels="g")
    np.testing.assert_allclose(table.values, VALUES)
    assert (table.row_names, table.column_names) == (ROWS, list("abcd"))
    assert table.row_numbers[0] == 4
    assert table.labels.tolist() == GROUPS
    assert table.notes == ("1 column without numbers left out: 'when'",)
    pd.DataFrame(VALUES).to_excel(tmp_path / "b.xlsx", header=False, index=False)
    np.testing.assert_allclose(read_table(tmp_path / "b.xlsx").values, VALUES)
    pd.DataFrame().to_excel(tmp_path / "c.xlsx")
    with pytest.raises(DataError, match="is empty"):
        read_table(tmp_path / "c.xlsx")


def test_sheets_without_the_package_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"pip install 'mnpca\[excel\]'; or save the sheet as CSV"):
        read_table(write(tmp_path / "a.xlsx", "PK"))


def test_marks_of_thousands_leave_dates_alone(tmp_path):
    text = "name;a;day\nu;1.234,5;03.05.2021\nv;12,5;04.05.2021\nw;1.234.567,5;05.05.2021\n"
    table = read_table(write(tmp_path / "a.csv", text), decimal=",", strip=(".",))
    assert table.values.ravel().tolist() == [1234.5, 12.5, 1234567.5]
    assert table.notes == ("1 column without numbers left out: 'day'",)


def test_numbers_with_letters_may_name_the_rows(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "well,a\n1A,2\n2A,3\n"))
    assert table.row_names == ["1A", "2A"]
    with pytest.raises(DataError, match="--strip % to read cells such as '1%'"):
        read_table(write(tmp_path / "b.csv", "share,a\n1%,2\n2%,3\n"))


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        ("a,b\n(1.5),2\n3,4\n", "brackets only mark a number; if they mean a negative one, write"),
        ("a,b\n1.5-,2\n3,4\n", "Write the minus sign before the number"),
        ("a,b\n1.5D+03,2\n2.5D+03,4\n", "Write the exponents with E"),
        ("a,b\n1,2\n3,4\nSource: lab 3,\n", r"if row 4 is a note below the table, delete it"),
        ('a,b\n"12,34,567.5",2\n"7,89,012",4\n', "--strip , to read numbers such as 1,234.5"),
        ('a,b\n"1,234.5",2\n–,4\n', "--strip , to .*, and --na '–' if this stands for"),
        ("a,b\n1 ± 2,2 ± 1\n3 ± 1,4 ± 1\n", "no column holds numbers: 'b' begins with '2 ± 1'"),
        ('a,b\n1,2\n3,"4\n5,6\n', "the quotation mark in row 3 is never closed"),
        ("a,b,c\n1,2\n3,4\n", "there are 3 column names, and the first row has 2 cells"),
        ("<html><table>\n<tr>\n", "HTML or XML; open it in a spreadsheet and save it as CSV"),
        ('[{"a": 1},\n {"a": 2}]\n', "JSON; save it as CSV"),
    ],
)
def test_what_no_option_should_guess_is_refused_with_what_to_do(tmp_path, content, remedy):
    path = tmp_path / "data.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=remedy):
        read_table(path)


def test_files_with_the_ending_of_another_kind_say_what_they_are(tmp_path):
    (tmp_path / "plain.csv").write_text("a,b\n1,2\n3,4\n")
    with gzip.open(tmp_path / "zipped.csv", "wb") as file:
        file.write(b"a,b\n1,2\n")
    with pytest.raises(DataError, match=r"a gzipped file; add \.gz to its name"):
        read_table(tmp_path / "zipped.csv")
    np.savez(tmp_path / "sheet.npz", X=np.ones((2, 2)))
    (tmp_path / "sheet.npz").rename(tmp_path / "sheet.csv")
    with pytest.raises(DataError, match="a spreadsheet or another zip archive; give it"):
        read_table(tmp_path / "sheet.csv")


def test_thousands_are_grouped_as_in_india_too(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('a,b\n"12,34,567.5","1,23"\n"-7,89,012","1,234"\n')
    with pytest.raises(DataError, match=r"column 'b'.*'1,23'"):  # that is no thousand
        read_table(path, strip=(",",))
    values = read_table(path, strip=(",",), drop=("b",)).values
    np.testing.assert_array_equal(values, [[1234567.5], [-789012]])
