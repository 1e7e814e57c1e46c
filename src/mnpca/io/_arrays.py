"""Readers of NumPy and Matrix Market files. Shapes are checked before the numbers are read."""

import zipfile

import numpy as np
import scipy.io
import scipy.sparse as sp

from mnpca.io._table import DataError, Table, check_matrix, check_shape, listed

#: What a dense matrix is called in an NPZ file, in the order in which it is looked for.
NPZ_NAMES = ("X", "Y", "data", "arr_0")
_SPARSE_NAMES = {"format", "shape", "data"}


def read_npy(path, labels=None):
    """Read a two-dimensional array."""
    _no_labels(labels, "an NPY file")
    with open(path, "rb") as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            raise DataError("not an NPY file; save the matrix with numpy.save.")
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim == 2:
        check_shape(*array.shape)
    return Table(check_matrix(array))


def read_npz(path, labels=None):
    """Read the matrix of an NPZ file: dense, or sparse as scipy saves it.

    Arrays ``row_names`` and ``column_names``, and one with the name of the labels, are used when
    they are there.
    """
    with zipfile.ZipFile(path) as archive:
        shapes = {
            name.removesuffix(".npy"): _npy_shape(archive, name)
            for name in archive.namelist()
            if name.endswith(".npy")
        }
    with np.load(path, allow_pickle=False) as arrays:
        if shapes.keys() >= _SPARSE_NAMES:
            return Table(_sparse_values(path, arrays), labels=_npz_labels(arrays, labels, shapes))
        name = _matrix_name(shapes)
        check_shape(*shapes[name])
        values = check_matrix(arrays[name])
        return Table(
            values,
            row_names=_npz_names(arrays, "row_names", shapes, len(values)),
            column_names=_npz_names(arrays, "column_names", shapes, values.shape[1]),
            labels=_npz_labels(arrays, labels, shapes, len(values)),
            label_name=labels,
        )


def read_mtx(path, labels=None):
    """Read a Matrix Market file; zeros that are not stored are zeros."""
    _no_labels(labels, "an MTX file")
    n_rows, n_columns, entries, _, field, _ = scipy.io.mminfo(path)
    check_shape(n_rows, n_columns)
    if field not in ("real", "integer", "unsigned-integer", "pattern", "double"):
        raise DataError(f"the numbers are {field}; real numbers are needed.")
    if entries > n_rows * n_columns:
        raise DataError("the header promises more entries than the matrix has cells.")
    matrix = scipy.io.mmread(path)
    return Table(check_matrix(matrix.toarray() if sp.issparse(matrix) else matrix))


def _no_labels(labels, kind):
    if labels is not None:
        raise DataError(f"{kind} has no named columns, so --labels cannot be used with it.")


def _npy_shape(archive, name):
    """Shape of one member, from its header alone."""
    with archive.open(name) as member:
        version = np.lib.format.read_magic(member)
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0(member)
        else:
            header = np.lib.format.read_array_header_2_0(member)
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
    return check_matrix(sp.load_npz(path).toarray())


def _npz_names(arrays, key, shapes, length):
    if shapes.get(key) != (length,):
        return None
    return [str(name) for name in arrays[key]]


def _npz_labels(arrays, labels, shapes, length=None):
    if labels is None:
        return None
    if labels not in shapes:
        raise DataError(f"no array {labels!r} for --labels; the file holds {listed(shapes)}.")
    if len(shapes[labels]) != 1 or (length is not None and shapes[labels] != (length,)):
        raise DataError(f"the array {labels!r} of --labels does not have one entry per row.")
    return arrays[labels].astype(str)
