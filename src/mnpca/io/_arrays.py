"""Readers of NumPy and Matrix Market files. Shapes are checked before the numbers are read."""

import zipfile

import numpy as np
import scipy.sparse as sp

from mnpca.io._market import read_market_values
from mnpca.io._table import (
    MAX_FILE_BYTES,
    DataError,
    Table,
    check_matrix,
    check_shape,
    listed,
    quoted,
)

#: What a dense matrix is called in an NPZ file, in the order in which it is looked for.
NPZ_NAMES = ("X", "Y", "data", "arr_0")
_SPARSE_NAMES = {"format", "shape", "data"}


def read_npy(path, reading):
    """Read a two-dimensional array."""
    _no_names(reading, "an NPY file")
    with open(path, "rb") as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            raise DataError("not an NPY file; save the matrix with numpy.save.")
    with open(path, "rb") as file:
        shape = _npy_shape(file)
    if len(shape) != 2:
        raise DataError(f"not a matrix: the array has {len(shape)} dimensions, not 2.")
    check_shape(*shape)
    return Table(check_matrix(np.load(path, allow_pickle=False)))


def read_npz(path, reading):
    """Read the matrix of an NPZ file: dense, or sparse as scipy saves it.

    Arrays ``row_names`` and ``column_names``, and one with the name of the labels, are used when
    they are there.
    """
    reading.only_names("an NPZ file")
    labels = reading.labels
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_FILE_BYTES:
            raise DataError(f"unzips to more than {MAX_FILE_BYTES // 2**30} GB.")
        shapes = {}
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    shapes[name.removesuffix(".npy")] = _npy_shape(member)
    with np.load(path, allow_pickle=False) as arrays:
        if shapes.keys() >= _SPARSE_NAMES:
            values = _sparse_values(path, arrays)
        else:
            name = _matrix_name(shapes)
            check_shape(*shapes[name])
            values = check_matrix(arrays[name])
        n_rows, n_columns = values.shape
        if labels is not None and labels not in shapes:
            raise DataError(
                f"no array {quoted(labels)} for --labels; the file holds {listed(shapes)}."
            )
        return Table(
            values,
            row_names=_npz_names(arrays, "row_names", shapes, n_rows, "row"),
            column_names=_npz_names(arrays, "column_names", shapes, n_columns, "column"),
            labels=None if labels is None else _npz_texts(arrays, labels, shapes, n_rows, "row"),
            label_name=labels,
        )


def read_mtx(path, reading):
    """Read a Matrix Market file; zeros that are not stored are zeros."""
    _no_names(reading, "an MTX file")
    return Table(check_matrix(read_market_values(path)))


def _no_names(reading, kind):
    reading.only_names(kind)
    if reading.labels is not None:
        raise DataError(f"{kind} has no named columns, so --labels cannot be used with it.")


def _npy_shape(file):
    """Shape of an array, from its header alone."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        header = np.lib.format.read_array_header_1_0(file)
    else:
        header = np.lib.format.read_array_header_2_0(file)
    return header[0]


def _matrix_name(shapes):
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    if not matrices:
        raise DataError(f"not a matrix: no two-dimensional array among {listed(shapes)}.")
    for name in NPZ_NAMES:
        if name in matrices:
            return name
    if len(matrices) > 1:
        raise DataError(f"which matrix? The file holds {listed(matrices)}; name one of them X.")
    return matrices[0]


def _sparse_values(path, arrays):
    shape = np.atleast_1d(arrays["shape"])
    if shape.shape != (2,):
        raise DataError("not a matrix: the sparse array does not have two dimensions.")
    check_shape(int(shape[0]), int(shape[1]))
    matrix = sp.load_npz(path)
    if matrix.format in ("csr", "csc", "bsr"):
        # SciPy's compiled routines trust the indices and would write outside the matrix.
        matrix.check_format(full_check=True)
    return check_matrix(matrix.toarray())


def _npz_names(arrays, key, shapes, length, side):
    return _npz_texts(arrays, key, shapes, length, side).tolist() if key in shapes else None


def _npz_texts(arrays, key, shapes, length, side):
    """Return an array of texts that must have one for every row or column."""
    if shapes[key] != (length,):
        raise DataError(
            f"the array {quoted(key)} does not have one entry for each of the {length} {side}s."
        )
    try:
        return arrays[key].astype(str)
    except ValueError as error:  # NumPy's, for a pickle
        raise DataError(
            f"the array {quoted(key)} holds Python objects; save it with .astype(str)."
        ) from error
