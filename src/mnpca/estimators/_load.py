"""Reading a model file: its class, its names, and whether its values can be those of a fit."""

import inspect
import os
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mnpca import estimators
from mnpca._typing import PathLike
from mnpca.estimators._files import MODELS
from mnpca.model.sparse import components, logdet
from mnpca.persistence import ModelFileError, read_document

#: What a fitted attribute must be, in one of four forms: the axes of an array, a letter each; a
#: list of these for an attribute of several arrays; a type; or the entries of a table.
#: p columns, k components, n rows of all matrices and m of one, h x w slices of N. Other letters
#: stand for any length, the same wherever they occur.
MATRIX = {
    "components_": "kp",
    "singular_values_": "k",
    "mean_": "p",
    "row_precision_": "mm",
    "col_precision_": "pp",
    "low_rank_": ["nr", "pr"],
    "score_covariance_": "kk",
    "noise_variance_": "",
}
FOLDING = {
    "cores_": "Nij",
    "row_components_": "ih",
    "col_components_": "jw",
    "mean_": "hw",
    "row_precision_": "hh",
    "col_precision_": "ww",
}
PRECISION = {"precision_": "pp", "location_": "p", "covariance_": "pp"}
#: None where a model with the parameter ``missing`` was fitted to a complete matrix. Files that
#: were written before the release of 0.1.0 may lack them.
INCOMPLETE = {
    "missing_": "np",
    "completed_": "np",
    "completed_std_": "np",
    "row_coef_": "qp",
    "row_covariates_": "nq",
    "row_covariates_mean_": "q",
    "col_coef_": "nc",
    "col_covariates_": "pc",
}
OPTIONAL: dict[str, Any] = {
    **INCOMPLETE,
    "signal_variance_": ["ns", "ps"],
    "full_signal_": ["nt", "pt"],
    "full_signal_variance_": ["nu", "pu"],
    "objective_history_": "o",
    "feature_names_in_": "p",
    "sample_names_in_": "m",
    "n_iter_": Integral,
    "converged_": bool | np.bool_,
    "choice_": str,
    "candidates_": list | tuple,
    "model_check_": {"white": None, "advice": str},
}
#: Of the tables that have an entry for rows and one for columns; i is the number of these.
SIDES: dict[str, dict[str, Any]] = {
    "noise_": {"structure": str, "why": str},
    "priors_": {"groups": "ig", "zero": "i"},
    "edge_tests_": {
        "first": "e",
        "second": "e",
        "partial_correlation": "e",
        "observations": "e",
        "n_items": Integral,
    },
}
NOT_NEGATIVE = ("singular_values_", "noise_variance_", "completed_std_", "n_iter_")
PRECISIONS = {"row_precision_", "col_precision_", "precision_", "precisions_"}
#: Other names and former parameters in files from before the release of 0.1.0.
RENAMED = {"TensorMNPCA": {"rank": "n_components", "rank_": "n_components_"}}
DROPPED = dict.fromkeys(
    ("DimensionFoldingPCA", "LikelihoodMNPCA", "SparsePrecision", "WassersteinMNPCA"),
    ("random_state",),
)
#: A precision with larger connected components is taken as positive definite; the proof for this
#: many items takes a second or two.
PROVED_SIZE = 4000


def load(path: PathLike) -> Any:
    """Read a fitted model that `save` wrote.

    Nothing in the file is executed: it holds numbers, strings and arrays, and the class is one of
    mnpca's estimators.

    Parameters
    ----------
    path : path-like
        A model file, of this version or an earlier one.

    Returns
    -------
    estimator
        With the parameters and fitted attributes it had.

    Raises
    ------
    ModelFileError
        If the file is truncated, altered, foreign, or from a later version, or if its arrays do
        not fit each other, are not finite, or are not precisions where they should be.

    Examples
    --------
    >>> import os, tempfile
    >>> import mnpca
    >>> from mnpca.datasets import make_paper_small
    >>> model = mnpca.GeneralizedPCA(n_components=2).fit(make_paper_small(seed=0).Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.mnpca")
    ...     _ = model.save(path)
    ...     again = mnpca.load(path)
    >>> bool((again.components_ == model.components_).all())
    True
    """
    content = read_document(path, "model")
    try:
        return _rebuild(content["class"], content["params"], content["attributes"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{os.fspath(path)!r} cannot be read: it does not describe a fitted model ({error})."
        ) from error


def _rebuild(kind: str, params: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """Return the model with the given class name, parameters and attributes."""
    if kind not in MODELS:
        raise ValueError(f"{kind!r} is not a model of this version")
    model_class = getattr(estimators, kind)
    renamed, dropped = RENAMED.get(kind, {}), DROPPED.get(kind, ())
    params, attributes = (
        {renamed.get(name, name): value for name, value in each.items() if name not in dropped}
        for each in (params, attributes)
    )
    known = inspect.signature(model_class).parameters
    if unknown := params.keys() - known.keys():
        raise ValueError(f"unknown parameters {sorted(map(str, unknown))}")
    for name in attributes:
        if not (isinstance(name, str) and name.isidentifier()):
            raise ValueError(f"{name!r} is no attribute name")
        if name.startswith("__") or hasattr(model_class, name) or name in known:
            raise ValueError(f"attribute {name!r} would replace a part of the class")
    if "missing" in known:
        attributes |= {name: None for name in INCOMPLETE if name not in attributes}
    model = model_class(**params)
    vars(model).update(attributes)
    check_is_fitted(model)
    _check_values(kind, vars(model))
    return model


def _check_values(kind: str, values: dict[str, Any]) -> None:
    """Refuse values that do not fit each other or cannot be what their names say."""
    required, lengths = _required(kind, values)
    for name, expected in {**required, **OPTIONAL}.items():
        if values.get(name) is not None or name in required:
            _check(name, values.get(name), expected, lengths)
    for name in required.keys() & PRECISIONS:
        for matrix in values[name] if isinstance(required[name], list) else [values[name]]:
            _check_precision(name, matrix, semi=kind == "GeneralizedPCA")
    sizes = {"rows": lengths.get("n", 0), "columns": values["n_features_in_"]}
    for name, entries in SIDES.items():
        table = values.get(name)
        if table is None:
            continue
        if not isinstance(table, dict) or not table.keys() <= sizes.keys() or not table:
            raise ValueError(f"{name} is not a table of rows and columns")
        for side, entry in table.items():
            _check(f"{name} of the {side}", entry, entries, {"i": sizes[side]})
            if name == "edge_tests_":
                _check_pairs(f"{name} of the {side}", entry)
    if kind == "DimensionFoldingPCA":
        for side in ("row", "col"):
            name = f"{side}_components_"
            _check_orthonormal(name, values[name], values[f"{side}_precision_"])
    if "score_covariance_" in required:
        _check_row_distribution(values)
        # A singular metric, which only GeneralizedPCA may have, leaves components without length.
        if kind != "GeneralizedPCA":
            _check_orthonormal("components_", values["components_"], values["col_precision_"])


def _required(kind: str, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return what a class must have, and the lengths of axes that are known beforehand."""
    if kind == "SparsePrecision":
        return PRECISION, {"p": values["n_features_in_"]}
    if kind == "DimensionFoldingPCA":
        return FOLDING, dict(zip("Nhw", values["shape_"], strict=True))
    if kind == "TensorMNPCA":
        sizes, ranks = values["shape_"], values["n_components_"]
        d, r = (tuple(f"{letter}{axis}" for axis in range(len(sizes))) for letter in "dr")
        lengths = dict(zip(d, sizes, strict=True)) | dict(zip(r, ranks, strict=True))
        return {
            "core_": r,
            "factors_": list(zip(d, r, strict=True)),
            "precisions_": list(zip(d, d, strict=True)),
            "mean_": d[1:],
            "components_": (r[0], *d[1:]),
        }, lengths
    lengths = {"p": values["n_features_in_"], "k": values["n_components_"]}
    rows = len(values["low_rank_"][0])
    return MATRIX, lengths | {"n": rows, "m": rows // (values.get("n_matrices_") or 1)}


def _check(name: str, value: Any, expected: Any, lengths: dict[str, int]) -> None:
    """Compare a value with one of the forms of `MATRIX`; None stands for any value."""
    if isinstance(expected, list):
        if not isinstance(value, tuple | list) or len(value) != len(expected):
            raise ValueError(f"{name} does not have {len(expected)} parts")
        for part, axes in zip(value, expected, strict=True):
            _check_array(name, part, axes, lengths)
    elif isinstance(expected, dict):
        if not isinstance(value, dict) or not value.keys() >= expected.keys():
            raise ValueError(f"{name} lacks {' or '.join(expected)}")
        for entry, form in expected.items():
            if value[entry] is not None:
                _check(name, value[entry], form, lengths)
    elif isinstance(expected, str | tuple):
        _check_array(name, value, expected, lengths)
    elif expected is not None and not isinstance(value, expected):
        raise ValueError(f"{name} is a {type(value).__name__}")
    if name in NOT_NEGATIVE and np.any(np.asarray(value) < 0):
        raise ValueError(f"{name} is negative")


def _check_array(name: str, value: Any, axes: Sequence[str], lengths: dict[str, int]) -> None:
    array = value if sp.issparse(value) else np.asarray(value)
    if array.ndim != len(axes):
        raise ValueError(f"{name} has {array.ndim} axes, not {len(axes)}")
    for axis, length in zip(axes, array.shape, strict=True):
        wanted = lengths.setdefault(axis, length)
        if length != wanted:
            raise ValueError(f"{name} has the shape {array.shape}, with {length} for {wanted}")
    if name.endswith("names_in_"):
        if name == "feature_names_in_" and len(set(array.tolist())) < len(array):
            raise ValueError(f"{name} has a name twice")
    elif array.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {array.dtype}, not real numbers")
    elif not np.isfinite(array.data if sp.issparse(array) else array).all():
        raise ValueError(f"{name} has values that are not finite")


def _check_pairs(name: str, tests: dict[str, Any]) -> None:
    """Refuse tests of edges between items that do not exist."""
    first, second = np.asarray(tests["first"]), np.asarray(tests["second"])
    if not ((first >= 0) & (first < second) & (second < tests["n_items"])).all():
        raise ValueError(f"{name} join items that are not there")


def _check_precision(name: str, matrix: Any, *, semi: bool) -> None:
    """Refuse what is not symmetric and positive definite (`semi`: semi-definite)."""
    matrix = sp.csr_array(matrix, dtype=np.float64)
    largest = matrix.diagonal().max(initial=0.0)
    difference = abs(matrix - matrix.T)
    if difference.nnz and difference.max() > 1e-5 * largest:
        raise ValueError(f"{name} is not symmetric")
    if semi:
        matrix = sp.csr_array(matrix + 1e-6 * largest * sp.eye_array(matrix.shape[0]))
    try:
        if (matrix.diagonal() <= 0).any():
            raise np.linalg.LinAlgError
        if max(map(len, components(matrix))) <= PROVED_SIZE:
            logdet(matrix)
    except np.linalg.LinAlgError:
        raise ValueError(f"{name} is not positive {'semi-' * semi}definite") from None


def _check_row_distribution(values: dict[str, Any]) -> None:
    """Refuse what cannot be the distribution of an unseen row."""
    if not values["noise_variance_"] > 0:
        raise ValueError("noise_variance_ is not positive")
    if not values.get("degrees_of_freedom_", np.inf) > 2:
        raise ValueError("degrees_of_freedom_ is not above 2")
    covariance = np.asarray(values["score_covariance_"], dtype=np.float64)
    size = np.abs(covariance).max(initial=0.0)
    symmetric = np.allclose(covariance, covariance.T, rtol=1e-3, atol=1e-5 * size)
    lowest = np.linalg.eigvalsh((covariance + covariance.T) / 2).min(initial=0.0)
    if lowest < -1e-5 * size or not symmetric:
        raise ValueError("score_covariance_ is not a covariance")


def _check_orthonormal(name: str, loadings: Any, metric: Any) -> None:
    gram = loadings @ (metric @ loadings.T)
    tolerance = 0.1 if loadings.dtype == np.float32 else 1e-3
    if np.abs(gram - np.eye(len(gram))).max(initial=0) > tolerance:
        raise ValueError(f"{name} are not orthonormal in the metric of the noise")
