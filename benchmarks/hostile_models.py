"""Hostile model files: each must be refused with a reason, and nothing in it may run.

    python benchmarks/hostile_models.py

The first kind is damaged or lies about its form. A file of the second kind (tampered) is well
formed, and its numbers cannot be those of a fit. Prints what each file is answered.
"""

import copy
import gzip
import io
import json
import os
import pickle
import re
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from fuzz_models import pack, unpack

import mnpca

#: What a hostile file would write, if it could.
TRACE = "escaped"
N_ROWS, N_COLUMNS = 24, 10
DOCUMENT = "document.json"
#: The array of the mean, and the three of the row precision, in the file that is altered.
MEAN, DATA, INDICES, POINTERS = (f"arrays/{number}.npy" for number in (1, 6, 7, 8))


class Payload:
    """What unpickling would run."""

    def __reduce__(self):
        return os.mkdir, (TRACE,)


def data():
    """Return a signal of rank two in noise whose scale differs between columns, with names."""
    rng = np.random.default_rng(1000)
    signal = 3 * rng.normal(size=(N_ROWS, 2)) @ rng.normal(size=(2, N_COLUMNS))
    values = signal + rng.normal(size=signal.shape) * rng.uniform(0.5, 2, size=N_COLUMNS)
    frame = pd.DataFrame(values, index=[f"sample {i}" for i in range(N_ROWS)])
    return frame.set_axis([f"gene {j}" for j in range(N_COLUMNS)], axis=1)


def good():
    """Return the bytes of a good file with arrays, a sparse matrix and a random state."""
    params = {"n_components": 2, "random_state": np.random.RandomState(0)}
    return saved(mnpca.GeneralizedPCA(**params).fit(data().to_numpy()))


def saved(model):
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model.mnpca"))
        return Path(folder, "model.mnpca").read_bytes()


def whole(change):
    """Alter the bytes of the file."""
    return change


def member(name, change):
    """Alter the bytes of one member (None where it is new); None removes it."""

    def altered(file):
        members = unpack(file)
        content = change(members.get(name)) if callable(change) else change
        kept = {other: old for other, old in members.items() if other != name}
        return pack(kept if content is None else kept | {name: content})

    return altered


def document(change):
    """Alter what the document says."""

    def altered(text):
        tree = json.loads(text)
        return json.dumps(change(tree) or tree).encode()

    return member(DOCUMENT, altered)


def content(change):
    """Alter the class, parameters and attributes in the document."""

    def altered(tree):
        named = dict(tree["content"]["items"])
        change(named)
        tree["content"]["items"] = [list(item) for item in named.items()]

    return document(altered)


def attribute(name, value):
    """Add an attribute, or give one another value in the form of the document."""

    def altered(named):
        items = named["attributes"]["items"]
        items[:] = [item for item in items if item[0] != name] + [[name, value]]

    return content(altered)


def random_state(change):
    """Alter the random state among the parameters."""

    def altered(named):
        state = dict(named["params"]["items"])["random_state"]["state"]["items"]
        change(state)

    return content(altered)


def header(old, new):
    """Replace a part of the mean's header, which keeps its length."""

    def altered(array):
        length = 10 + int.from_bytes(array[8:10], "little")
        changed = array[10:length].replace(old, new)
        if changed == array[10:length]:
            raise ValueError(f"{old!r} is not in the header")
        changed = changed.rstrip(b" \n").ljust(length - 11) + b"\n"
        return array[:8] + len(changed).to_bytes(2, "little") + changed + array[length:]

    return member(MEAN, altered)


def integers(name, index, value):
    """Put a number into one of the integer arrays of the sparse matrix."""

    def altered(array):
        values = np.load(io.BytesIO(array))
        values[index] = value
        out = io.BytesIO()
        np.save(out, values)
        return out.getvalue()

    return member(name, altered)


def pickled(array):
    out = io.BytesIO()
    np.save(out, np.array([Payload()], dtype=object), allow_pickle=True)
    return out.getvalue()


def one_name_twice(file):
    out = io.BytesIO(file)
    with warnings.catch_warnings(), zipfile.ZipFile(out, "a") as archive:
        warnings.simplefilter("ignore")  # zipfile's, about this very name
        archive.writestr(DOCUMENT, b"{}")
    return out.getvalue()


def overlapping(file):
    """Let fifty entries of the directory claim the bytes of one array."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, old in unpack(file).items():
            archive.writestr(name, old)
        first = archive.getinfo(MEAN)
        for number in range(100, 150):
            entry = copy.copy(first)
            entry.filename = f"arrays/{number}.npy"
            archive.filelist.append(entry)
    return out.getvalue()


def flagged_as_encrypted(file):
    at = file.index(b"PK\x01\x02") + 8
    return file[:at] + bytes([file[at] | 1]) + file[at + 1 :]


def flipped(file):
    """Flip one bit of an array's numbers, not of its checksum."""
    at = file.index(b"NUMPY") + 130
    return file[:at] + bytes([file[at] ^ 1]) + file[at + 1 :]


def without_attributes(named):
    named["attributes"]["items"] = []


def of_class(name):
    return content(lambda named: named.update({"class": name}))


def of_schema(number):
    return document(lambda tree: tree.update(schema=number, version="9.0"))


SPARSE = {"type": "sparse", "format": "csr", "matrix": False, "shape": [N_ROWS, N_ROWS]}
FORM = "damaged or not an mnpca file"
#: What the file is, how it is made of a good one, words of the reason.
HOSTILE = [
    ("nothing", whole(lambda file: b""), "not an mnpca file"),
    ("a line of text", whole(lambda file: b"something else\n"), "not an mnpca file"),
    ("a pickle", whole(lambda file: pickle.dumps(Payload())), "not an mnpca file"),
    ("a gzipped file", whole(gzip.compress), "not an mnpca file"),
    ("the first half", whole(lambda file: file[: len(file) // 2]), "its end is missing"),
    ("the second half", whole(lambda file: file[len(file) // 2 :]), "more bytes than the file"),
    ("the directory is cut off", whole(lambda file: file[:-30]), "its end is missing"),
    ("zeros in the middle", whole(lambda file: file[:500] + bytes(900) + file[1400:]), FORM),
    ("a flipped bit", whole(flipped), FORM),
    ("another archive", whole(lambda file: pack({"a.txt": b"x"})), "foreign member"),
    ("deflated", whole(lambda file: pack(unpack(file), zipfile.ZIP_DEFLATED)), "compressed"),
    ("bzip2", whole(lambda file: pack(unpack(file), zipfile.ZIP_BZIP2)), "compressed"),
    ("a bomb of zeros",
     whole(lambda file: pack(unpack(file) | {MEAN: bytes(10**8)}, zipfile.ZIP_DEFLATED)),
     "compressed"),
    ("a path upwards", member("../escaped", b"x"), "foreign member"),
    ("a path from the root", member("/escaped", b"x"), "foreign member"),
    ("a path through a folder", member("arrays/../../escaped", b"x"), "foreign member"),
    ("a path of Windows", member("C:\\escaped", b"x"), "foreign member"),
    ("a number in other digits", member("arrays/\u0663.npy", b"x"), "foreign member"),
    ("one name twice", whole(one_name_twice), "same name"),
    ("overlapping members", whole(overlapping), "more bytes than the file"),
    ("flagged as encrypted", whole(flagged_as_encrypted), "encrypted"),
    ("20,000 members",
     whole(lambda file: pack(unpack(file) | {f"arrays/{i}.npy": b"" for i in range(50, 20050)})),
     "more than 10000"),
    ("no document", member(DOCUMENT, None), f"no {DOCUMENT}"),
    ("an array is gone", member(MEAN, None), "array 1 is missing"),
    ("an empty document", member(DOCUMENT, b""), FORM),
    ("a document that is not JSON", member(DOCUMENT, b"{'class': 1}"), FORM),
    ("a document that is not text", member(DOCUMENT, b"\xff\xfe{}"), FORM),
    ("100,000 brackets", member(DOCUMENT, b"[" * 100_000), FORM),
    ("a number of 10,000 digits", member(DOCUMENT, b"1" * 10_000), FORM),
    ("a list for the document", document(lambda tree: [tree]), "not an mnpca file"),
    ("another format", document(lambda tree: tree.update(format="x")), "not an mnpca file"),
    ("schema 0", of_schema(0), "schema number is 0"),
    ("schema true", of_schema(True), "schema number is True"),
    ("schema as text", of_schema("1"), "schema number is '1'"),
    ("a later schema", of_schema(99), r"later version \(mnpca 9.0.*Upgrade"),
    ("a version of many lines", document(lambda tree: tree.update(schema=9, version="1\n" * 10**5)),
     "later version"),
    ("a checkpoint", document(lambda tree: tree.update(kind="checkpoint")), "not a 'model' file"),
    ("no content", document(lambda tree: tree.pop("content") and tree), FORM),
    ("a list for the content", document(lambda tree: tree.update(content=[1])), "table of names"),
    ("an unknown type", attribute("mean_", {"type": "os.system"}), "unknown type 'os.system'"),
    ("the class of a module", of_class("os.system"), "not a model of this version"),
    ("the class of a base", of_class("MatrixNormalEstimator"), "not a model of this version"),
    ("a class of a megabyte", of_class("x" * 10**6), "does not describe"),
    ("a list for the class", of_class(["MNPCA"]), "not a model of this version"),
    ("no parameters", content(lambda named: named.pop("params")), "does not describe"),
    ("an unknown parameter",
     content(lambda named: named["params"]["items"].append(["evil", 1])), "unknown parameters"),
    ("a list for a parameter's name",
     content(lambda named: named["params"]["items"].append([["a"], 1])), FORM),
    ("a method replaced", attribute("transform", 1), "replace a part"),
    ("the class replaced", attribute("__class__", 1), "replace a part"),
    ("the attributes replaced", attribute("__dict__", 1), "replace a part"),
    ("a parameter among attributes", attribute("n_components", 1), "replace a part"),
    ("a name with a space", attribute("a b", 1), "no attribute name"),
    ("a number for a name", attribute(1, 1), "no attribute name"),
    ("nothing fitted", content(without_attributes), "not fitted"),
    ("an array of a negative number", attribute("mean_", {"type": "array", "number": -1}),
     "array -1 is missing"),
    ("an array used twice", attribute("mean_", {"type": "array", "number": 2}), "is missing"),
    ("a path for an array", attribute("mean_", {"type": "array", "number": "../1"}), FORM),
    ("code for a number", attribute("noise_variance_", {"type": "float", "value": "1+1"}), FORM),
    ("a scalar of an object", attribute("x_", {"type": "scalar", "dtype": "O", "hex": "00"}),
     "does not match its type"),
    ("a scalar of 1 GB", attribute("x_", {"type": "scalar", "dtype": "V1000000000", "hex": ""}),
     "does not match its type"),
    ("objects that hold tables",
     attribute("x_", {"type": "objects", "shape": [1], "items": [{"type": "dict", "items": []}]}),
     "more than strings and numbers"),
    ("objects of another shape",
     attribute("x_", {"type": "objects", "shape": [10**9, 2], "items": []}), FORM),
    ("a pair of three", attribute("low_rank_", {"type": "LowRank", "items": [1, 2, 3]}), FORM),
    ("an index outside", integers(INDICES, 0, 10**6), FORM),
    ("a negative index", integers(INDICES, 3, -5), FORM),
    ("pointers that go back", integers(POINTERS, 3, 10**6), FORM),
    ("a sparse array of lists", attribute("row_precision_", SPARSE | {"parts": [[1], [0], [0]]}),
     "not an array of numbers"),
    ("a sparse format of its own",
     attribute("row_precision_", SPARSE | {"format": "__init_", "parts": []}), FORM),
    ("a random state outside its key",
     random_state(lambda state: state[1][1]["items"][1].__setitem__(1, 10**9)), "position"),
    ("another random generator",
     random_state(lambda state: state[0].__setitem__(1, "os.system")), FORM),
    ("a pickled array", member(MEAN, pickled), "type object"),
    ("code in a header", header(b"(10,)", b"(__import__('os'),)"), "never writes"),
    ("a shape of 800 GB", header(b"(10,)", b"(99999999999,)"), "does not match its size"),
    ("a negative shape", header(b"(10,)", b"(-10,)"), "never writes"),
    ("a type of bytes", header(b"<f8", b"|V8"), "never writes"),
    ("a long type", header(b"<f8", b"<U999999999"), FORM),
    ("another version of NumPy's format",
     member(MEAN, lambda array: array[:6] + b"\x02\x00" + array[8:]), "npy format"),
    ("an array cut short", member(MEAN, lambda array: array[:-8]), "does not match its size"),
    ("an array with more", member(MEAN, lambda array: array + bytes(8)), "does not match its size"),
    ("truth values of 7",
     member(MEAN, lambda array: array[:128].replace(b"<f8", b"|b1")[:128] + b"\7" * 10),
     "truth values"),
]  # fmt: skip


def set_at(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


def negative(matrix):
    return -matrix


def of_rows(name, change):
    """Return a change of one entry of what a table says of the rows."""
    return lambda table: table | {"rows": table["rows"] | {name: change(table["rows"][name])}}


#: Estimator, attribute, how it is altered, words of the reason.
TAMPERED = [
    ("MNPCA", "components_", set_at((0, 0), np.nan), "not finite"),
    ("MNPCA", "components_", lambda c: c.T.copy(), r"shape \(10, 2\)"),
    ("MNPCA", "components_", lambda c: 3 * c, "not orthonormal"),
    ("MNPCA", "components_", lambda c: c[:, ::-1].copy(), "not orthonormal"),
    ("MNPCA", "components_", lambda c: c[:1], "with 1 for 2"),
    ("MNPCA", "components_", lambda c: c.astype(complex), "not real numbers"),
    ("MNPCA", "components_", lambda c: c.astype(str), "not real numbers"),
    ("MNPCA", "singular_values_", negative, "is negative"),
    ("MNPCA", "singular_values_", lambda s: s[::-1].copy(), "do not fall"),
    ("MNPCA", "mean_", set_at(0, np.inf), "not finite"),
    ("MNPCA", "mean_", lambda m: m[:-1], "shape"),
    ("MNPCA", "mean_", lambda m: None, "mean_"),
    ("MNPCA", "row_precision_", negative, "not positive definite"),
    ("MNPCA", "row_precision_", lambda a: a[:5][:, :5], "shape"),
    ("MNPCA", "row_precision_", lambda a: 5 * a, "determinant"),
    ("MNPCA", "col_precision_", lambda b: b + 0.1 * sp.eye_array(10, k=1), "not symmetric"),
    ("MNPCA", "col_precision_", lambda b: sp.csr_array(np.ones((10, 10))), "not positive def"),
    ("MNPCA", "low_rank_", lambda f: type(f)(f.right, f.left), "shape"),
    ("MNPCA", "low_rank_", lambda f: type(f)(f.left * np.nan, f.right), "not finite"),
    ("MNPCA", "low_rank_", lambda f: type(f)(f.left * 1e300, f.right * 1e300), "overflows"),
    ("MNPCA", "signal_variance_", lambda f: type(f)(-f.left, f.right), "is negative"),
    ("MNPCA", "signal_variance_", lambda f: type(f)(f.left, f.right[:3]), "shape"),
    ("MNPCA", "score_covariance_", negative, "not a covariance"),
    ("MNPCA", "noise_variance_", negative, "negative"),
    ("MNPCA", "noise_variance_", lambda v: 0.0, "not positive"),
    ("MNPCA", "n_features_in_", lambda p: p + 1, "shape"),
    ("MNPCA", "n_components_", lambda k: "two", "with 2 for two"),
    ("MNPCA", "feature_names_in_", lambda n: n[:4], "feature_names_in_"),
    ("MNPCA", "feature_names_in_", lambda n: n[:1].repeat(10), "a name twice"),
    ("MNPCA", "edge_tests_", of_rows("first", lambda i: i + 1000), "items that are not there"),
    ("MNPCA", "edge_tests_", of_rows("second", lambda i: i[:-1]), "second has the shape"),
    ("MNPCA", "edge_tests_", of_rows("n_items", lambda q: 10**9), "items that are not there"),
    ("MNPCA", "edge_tests_", lambda t: {}, "not a table of rows and columns"),
    ("MNPCA", "priors_", lambda t: {"rows": {"groups": None}}, "lacks groups or zero"),
    ("MNPCA", "priors_", of_rows("groups", lambda g: np.ones((3, 2))), "with 3 for 24"),
    ("MNPCA", "priors_", of_rows("groups", lambda g: np.full((24, 3), 0.9)), "add up to 1"),
    ("MNPCA", "priors_", of_rows("groups", lambda g: np.full((24, 1), 7.0)), "between 0 and 1"),
    ("MNPCA", "priors_", of_rows("zero", lambda z: np.full(24, -0.5)), "between 0 and 1"),
    ("MNPCA", "noise_", of_rows("structure", lambda s: "banana"), "no structure"),
    ("MNPCA", "noise_", of_rows("n_edges", lambda e: e + 3), "not that of the precision"),
    ("MNPCA", "outliers_", lambda o: np.ones((24, 10)), "not truth values"),
    ("MNPCA", "evidence_", lambda e: np.nan, "evidence_ is not finite"),
    ("MNPCA", "n_signal_", lambda n: 1, "n_signal_ is below"),
    ("MNPCA", "rank_path_", lambda r: [{"n_components": 2}], "no table of n_components and"),
    ("MNPCA", "row_chunks_", lambda c: (1, 2), "do not add up"),
    ("MNPCA", "feature_names_in_", lambda n: np.arange(10), "no text"),
    ("MNPCA", "noise_", lambda t: 3, "not a table of rows and columns"),
    ("MNPCA", "model_check_", lambda t: {}, "not the check of a model"),
    ("MNPCA", "candidates_", lambda t: "x", "candidates_ is a str"),
    ("MNPCA", "choice_", lambda t: 5, "choice_ is a int"),
    ("MNPCA", "objective_history_", lambda h: ["a"], "not real numbers"),
    ("MNPCA", "n_iter_", lambda n: -4, "n_iter_ is negative"),
    ("MNPCA", "n_iter_", lambda n: np.inf, "n_iter_ is a float"),
    ("MNPCA", "converged_", lambda c: "maybe", "converged_ is a str"),
    ("MNPCA", "full_signal_", lambda f: "x", "does not have 2 parts"),
    ("DimensionFoldingPCA", "col_components_", lambda c: 3 * c, "not orthonormal"),
    ("LikelihoodMNPCA", "col_precision_", lambda b: b * np.nan, "not finite"),
    ("WassersteinMNPCA", "components_", lambda c: c[0], "1 axes"),
    ("GeneralizedPCA", "row_precision_", negative, "not positive semi-definite"),
    ("SparsePrecision", "precision_", negative, "not positive definite"),
    ("SparsePrecision", "covariance_", set_at((1, 1), np.nan), "not finite"),
    ("SparsePrecision", "covariance_", set_at((1, 2), 9.0), "not symmetric"),
    ("SparsePrecision", "covariance_", negative, "negative variances"),
    ("SparsePrecision", "alpha_", lambda a: -1.0, "is negative"),
    ("TensorMNPCA", "n_components_", lambda k: (1, 1), "zip"),
    ("DimensionFoldingPCA", "row_components_", lambda c: c.T.copy(), "row_components_"),
    ("TensorMNPCA", "precisions_", lambda p: [-p[0], *p[1:]], "not positive definite"),
]  # fmt: skip


def fits():
    """Return a quick fit of every estimator that is tampered with, by name."""
    X = data()
    images = X.to_numpy().reshape(6, 4, N_COLUMNS)
    return {
        "MNPCA": mnpca.MNPCA(2, noise="graph", prior="gaussian").fit(X),
        "LikelihoodMNPCA": mnpca.LikelihoodMNPCA(2).fit(X),
        "WassersteinMNPCA": mnpca.WassersteinMNPCA(2).fit(X),
        "GeneralizedPCA": mnpca.GeneralizedPCA(2).fit(X),
        "SparsePrecision": mnpca.SparsePrecision().fit(X),
        "DimensionFoldingPCA": mnpca.DimensionFoldingPCA(2, 2).fit(images),
        "TensorMNPCA": mnpca.TensorMNPCA(1).fit(images),
    }


def tampered(model, name, change):
    """Return the bytes of a model's file with an altered attribute."""
    model = copy.copy(model)
    setattr(model, name, change(getattr(model, name)))
    return saved(model)


def answer(file, reason, folder):
    """Return the message that a file is refused with, None where it does not end as it should."""
    path = Path(folder, "model.mnpca")
    path.write_bytes(file)
    before, place = os.listdir(folder), Path.cwd()
    os.chdir(folder)
    try:
        mnpca.load(path)
        return None
    except mnpca.ModelFileError as error:
        message = str(error)
    finally:
        os.chdir(place)
    told = re.search(reason, message) and "\n" not in message and len(message) < 1000
    return message.replace(str(path), "...") if told and os.listdir(folder) == before else None


def main():
    file, models = good(), fits()
    files = [(title, change(file), reason) for title, change, reason in HOSTILE]
    for name, attribute, change, reason in TAMPERED:
        altered = tampered(models[name], attribute, change)
        files.append((f"{name}.{attribute} tampered with", altered, reason))
    refused = 0
    for title, altered, reason in files:
        with tempfile.TemporaryDirectory() as folder:
            message = answer(altered, reason, folder)
        refused += message is not None
        print(f"{title:45} {message or 'WRONG'}"[:170])
    print(
        f"{refused} of {len(files)} refused with a reason: {len(HOSTILE)} of false form, ", end=""
    )
    print(f"{len(TAMPERED)} tampered with")
    return 0 if refused == len(files) else 1


if __name__ == "__main__":
    sys.exit(main())
