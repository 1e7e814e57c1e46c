"""Whether the fitted attributes of a model file can be those of a fit."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca.model.sparse import components, logdet

#: Axes of the fitted arrays, a letter each: p columns, k components, n rows of all matrices and m
#: of one, h x w slices of N. Other letters stand for any length, the same wherever they occur. A
#: list stands for an attribute of several arrays.
MATRIX_AXES = {
    "components_": "kp",
    "singular_values_": "k",
    "mean_": "p",
    "row_precision_": "mm",
    "col_precision_": "pp",
    "low_rank_": ["nr", "pr"],
    "score_covariance_": "kk",
    "noise_variance_": "",
}
PRECISION_AXES = {"precision_": "pp", "location_": "p", "covariance_": "pp"}
FOLDING_AXES = {
    "cores_": "Nij",
    "row_components_": "ih",
    "col_components_": "jw",
    "mean_": "hw",
    "row_precision_": "hh",
    "col_precision_": "ww",
}
#: What only some fits have.
OPTIONAL_AXES = {
    "signal_variance_": ["ns", "ps"],
    "full_signal_": ["nt", "pt"],
    "full_signal_variance_": ["nu", "pu"],
    "objective_history_": "o",
    "missing_": "np",
    "outliers_": "np",
    "completed_": "np",
    "completed_std_": "np",
    "row_coef_": "qp",
    "row_covariates_": "nq",
    "row_covariates_mean_": "q",
    "col_coef_": "nc",
    "col_covariates_": "pc",
    "feature_names_in_": "p",
    "sample_names_in_": "m",
    "alpha_": "",
}
#: What else is read from a model, where it is there, and the names in a table.
KINDS: dict[str, Any] = {
    "n_iter_": Integral,
    "n_features_in_": Integral,
    "n_signal_": Integral,
    "evidence_": float,
    "converged_": bool | np.bool_,
    "choice_": str,
    "candidates_": list | tuple,
    "rank_path_": list | tuple,
    "predictions_": list | tuple,
    "row_chunks_": tuple,
}
#: What each entry of a list has.
LISTS = {
    "candidates_": (),
    "rank_path_": ("n_components", "evidence"),
    "predictions_": ("noise", "n_components", "error"),
}
TABLES = {
    "noise_": ("structure", "n_edges", "why"),
    "priors_": ("groups", "zero"),
    "edge_tests_": ("n_items", "first", "second", "partial_correlation", "observations"),
}
PRECISIONS = ("row_precision_", "col_precision_", "precision_", "precisions_")
#: Between what numbers lie.
RANGES = {
    **dict.fromkeys(("singular_values_", "completed_std_", "noise_variance_"), (0.0, np.inf)),
    **dict.fromkeys(("signal_variance_", "full_signal_variance_", "alpha_"), (0.0, np.inf)),
    "partial_correlation": (-1.0, 1.0),
    "observations": (0.0, np.inf),
    "groups": (0.0, 1.0),
    "zero": (0.0, 1.0),
}
FLAGS = ("missing_", "outliers_")
IN_GAUGE = ("MNPCA", "LikelihoodMNPCA", "WassersteinMNPCA")
#: Items of a connected component whose definiteness is proved, in a second or two.
PROVED_SIZE = 4000


def check_meaning(model: Any) -> None:
    """Refuse a model whose arrays do not fit each other or cannot be what their names say."""
    kind, values = type(model).__name__, vars(model)
    required, lengths = _axes_of(kind, values)
    for name, axes in {**required, **OPTIONAL_AXES}.items():
        value = values.get(name)
        if value is None and name not in required:
            continue
        if name == "outliers_" and np.ndim(value) == 3:  # of several matrices
            value = np.concatenate(value)
        parts, axes = (value, axes) if isinstance(axes, list) else ([value], [axes])
        if not isinstance(parts, tuple | list) or len(parts) != len(axes):
            raise ValueError(f"{name} does not have {len(axes)} parts")
        for part, letters in zip(parts, axes, strict=True):
            _check_array(name, part, letters, lengths)
            if name in PRECISIONS:
                volume = _check_precision(name, part, semi=kind == "GeneralizedPCA")
                gauge = name == "row_precision_" and kind in IN_GAUGE
                if gauge and abs(volume) > 1e-3 * part.shape[0]:
                    raise ValueError("row_precision_ does not have the determinant 1")
            elif name == "covariance_":
                _check_symmetric(name, part)
                if (np.diagonal(part) < 0).any():
                    raise ValueError("covariance_ has negative variances")
    _check_kinds(values)
    _check_sides(values, {"rows": lengths.get("n", 0), "columns": values["n_features_in_"]})
    _check_together(kind, values)


def _axes_of(kind: str, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the axes of the attributes that a class must have, and the lengths known so far."""
    if kind == "SparsePrecision":
        return PRECISION_AXES, {"p": values["n_features_in_"]}
    if kind == "DimensionFoldingPCA":
        return FOLDING_AXES, dict(zip("Nhw", values["shape_"], strict=True))
    if kind == "TensorMNPCA":
        lengths = {f"d{i}": length for i, length in enumerate(values["shape_"])}
        order = range(len(values["shape_"]))
        lengths |= {f"r{i}": k for i, k in zip(order, values["n_components_"], strict=True)}
        slices = tuple(f"d{i}" for i in order[1:])
        axes = {
            "core_": tuple(f"r{i}" for i in order),
            "factors_": [(f"d{i}", f"r{i}") for i in order],
            "precisions_": [(f"d{i}", f"d{i}") for i in order],
            "mean_": slices,
            "components_": ("r0", *slices),
        }
        return axes, lengths
    lengths = {"p": values["n_features_in_"], "k": values["n_components_"]}
    rows = len(values["low_rank_"][0])
    several = values.get("n_matrices_") or 1
    return MATRIX_AXES, lengths | {"n": rows, "m": rows // several}


def _check_array(name: str, value: Any, letters: Sequence[str], lengths: dict[str, int]) -> None:
    array = value if sp.issparse(value) else np.asarray(value)
    if array.ndim != len(letters):
        raise ValueError(f"{name} has {array.ndim} axes, not {len(letters)}")
    for letter, length in zip(letters, array.shape, strict=True):
        wanted = lengths.setdefault(letter, length)
        if length != wanted:
            raise ValueError(f"{name} has the shape {array.shape}, with {length} for {wanted}")
    if name.endswith("names_in_"):
        if not all(isinstance(each, str) for each in array.tolist()):
            raise ValueError(f"{name} has names that are no text")
        if name == "feature_names_in_" and len(set(array.tolist())) < len(array):
            raise ValueError(f"{name} has a name twice")
        return
    if array.dtype.kind not in ("b" if name in FLAGS else "fiub"):
        values = "truth values" if name in FLAGS else "real numbers"
        raise ValueError(f"{name} holds {array.dtype}, not {values}")
    numbers: Any = array.data if sp.issparse(array) else array
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} has values that are not finite")
    low, high = RANGES.get(name, (-np.inf, np.inf))
    slack = 1e-6 * np.abs(numbers).max(initial=0.0)
    if (numbers < low - slack).any() or (numbers > high + slack).any():
        what = "negative" if high == np.inf else f"not between {low:.0f} and {high:.0f}"
        raise ValueError(f"{name} is {what}")


def _check_kinds(values: dict[str, Any]) -> None:
    """Check the plain values that the report and `fit` of more data read."""
    for name, kind in KINDS.items():
        if name in values and values[name] is not None and not isinstance(values[name], kind):
            raise ValueError(f"{name} is a {type(values[name]).__name__}")
    if values.get("n_iter_", 0) < 0:
        raise ValueError("n_iter_ is negative")
    if "n_signal_" in values and values["n_signal_"] < values["n_components_"]:
        raise ValueError("n_signal_ is below n_components_")
    if not np.isfinite(values.get("evidence_", 0.0)):
        raise ValueError("evidence_ is not finite")
    for name, entries in LISTS.items():
        for each in values.get(name) or ():
            if not isinstance(each, dict) or not each.keys() >= set(entries):
                raise ValueError(f"an entry of {name} is no table of {' and '.join(entries)}")
    check = values.get("model_check_")
    if check is not None and not (
        isinstance(check, dict)
        and isinstance(check.get("advice"), str)
        and check.get("white", "") in (True, False, None)
    ):
        raise ValueError("model_check_ is not the check of a model")


def _check_sides(values: dict[str, Any], sizes: dict[str, int]) -> None:
    """Check the tables that say something of rows and of columns."""
    for name, entries in TABLES.items():
        table = values.get(name)
        if table is None:
            continue
        if not isinstance(table, dict) or not table.keys() <= sizes.keys() or not table:
            raise ValueError(f"{name} is not a table of rows and columns")
        for side, about in table.items():
            if not isinstance(about, dict) or not about.keys() >= set(entries):
                raise ValueError(f"{name} of the {side} lacks {' or '.join(entries)}")
            if name == "noise_":
                _check_noise(side, about, values)
            elif name == "priors_":
                _check_prior(side, about, sizes[side])
            elif name == "edge_tests_":
                several = (values.get("n_matrices_") or 1) if side == "rows" else 1
                _check_tests(side, about, sizes[side] // several)


def _check_noise(side: str, noise: dict[str, Any], values: dict[str, Any]) -> None:
    """Check what is said of a side's noise against its precision."""
    if noise["structure"] not in ("identity", "diagonal", "graph") or type(noise["why"]) is not str:
        raise ValueError(f"noise_ of the {side} has no structure or no reason")
    precision = sp.csr_array(values["row_precision_" if side == "rows" else "col_precision_"])
    n_edges = (precision.nnz - precision.shape[0]) // 2
    if (noise["structure"] == "graph") != (n_edges > 0) or noise["n_edges"] != n_edges:
        raise ValueError(f"noise_ of the {side} is not that of the precision, of {n_edges} edges")


def _check_prior(side: str, prior: dict[str, Any], size: int) -> None:
    lengths = {"i": size}
    for name, axes in (("groups", "ig"), ("zero", "i")):
        if prior[name] is not None:
            _check_array(name, prior[name], axes, lengths)
    if not isinstance(prior.get("family", ""), str):
        raise ValueError(f"priors_ of the {side} have no family")
    if (
        prior["groups"] is not None
        and abs(np.sum(prior["groups"], axis=1) - 1.0).max(initial=0.0) > 1e-3
    ):
        raise ValueError(f"groups of the {side} have probabilities that do not add up to 1")


def _check_tests(side: str, tests: dict[str, Any], size: int) -> None:
    lengths: dict[str, int] = {}
    for array in ("first", "second", "partial_correlation", "observations"):
        _check_array(array, tests[array], "e", lengths)
    first, second = np.asarray(tests["first"]), np.asarray(tests["second"])
    inside = ((first >= 0) & (first < second) & (second < size)).all()
    if not inside or tests["n_items"] not in (0, size):
        raise ValueError(f"edge_tests_ of the {side} join items that are not there")


def _check_precision(name: str, matrix: Any, *, semi: bool) -> float:
    """Refuse a precision that is not symmetric and positive definite (`semi`: semi-definite).

    Definiteness is proved where the connected components are small enough for that; then the log
    determinant is returned, otherwise 0.
    """
    _check_symmetric(name, matrix)
    matrix = sp.csr_array(matrix, dtype=np.float64)
    if semi:
        largest = matrix.diagonal().max(initial=0.0)
        matrix = sp.csr_array(matrix + 1e-6 * largest * sp.eye_array(matrix.shape[0]))
    try:
        if (matrix.diagonal() <= 0).any():
            raise np.linalg.LinAlgError
        if max(map(len, components(matrix))) <= PROVED_SIZE:
            return float(logdet(matrix))
    except np.linalg.LinAlgError:
        raise ValueError(f"{name} is not positive {'semi-' * semi}definite") from None
    return 0.0


def _check_symmetric(name: str, matrix: Any) -> None:
    """Refuse a matrix that is not symmetric."""
    if abs(matrix - matrix.T).max() > 1e-5 * abs(matrix.diagonal()).max(initial=0.0):
        raise ValueError(f"{name} is not symmetric")


def _check_together(kind: str, values: dict[str, Any]) -> None:
    """Check what attributes must be to each other in a matrix model."""
    if kind == "DimensionFoldingPCA":
        for side, metric in (("row", "row_precision_"), ("col", "col_precision_")):
            _check_orthonormal(f"{side}_components_", values[f"{side}_components_"], values[metric])
    if "score_covariance_" not in values:
        return
    singular_values = np.asarray(values["singular_values_"], dtype=np.float64)
    if (np.diff(singular_values) > 1e-4 * singular_values[:-1]).any():
        raise ValueError("singular_values_ do not fall")
    n_rows = len(values["low_rank_"][0])
    if sum(values.get("row_chunks_") or [n_rows]) != n_rows:
        raise ValueError("row_chunks_ do not add up to the rows")
    with np.errstate(over="ignore", invalid="ignore"):
        left, right = (np.sum(np.square(part), axis=0) for part in values["low_rank_"])
        if not np.isfinite(left * right).all():
            raise ValueError("low_rank_ overflows")
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
    # A singular metric, which only GeneralizedPCA may have, leaves components without length.
    if kind != "GeneralizedPCA":
        _check_orthonormal("components_", values["components_"], values["col_precision_"])


def _check_orthonormal(name: str, loadings: Any, metric: Any) -> None:
    gram = loadings @ (metric @ loadings.T)
    tolerance = 0.1 if loadings.dtype == np.float32 else 1e-3
    if np.abs(gram - np.eye(len(gram))).max(initial=0) > tolerance:
        raise ValueError(f"{name} are not orthonormal in the metric of the noise")
