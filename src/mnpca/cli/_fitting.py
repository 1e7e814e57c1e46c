"""Running an estimator from the command line's choices."""

import inspect
import time
import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import mnpca
from mnpca.cli._options import Algorithm
from mnpca.io import DataError, quoted
from mnpca.model.low_rank import LowRank

#: Scales whose squares, and their inverses, are ordinary numbers.
SMALLEST_UNIT, LARGEST_UNIT = 1e-100, 1e100


_CLASSES = {
    Algorithm.mnpca: "MNPCA",
    Algorithm.likelihood: "LikelihoodMNPCA",
    Algorithm.wasserstein: "WassersteinMNPCA",
}


def make_estimator(algorithm, n_components, shape, *, noise=None, prior=None, robust=False, seed=0):
    """Return the estimator for an algorithm and ``-k``: "auto" or a number as text.

    MNPCA chooses the rank itself; for the paper's algorithms "auto" is the paper's rule. `noise`
    is a structure as Python takes it, or two with a comma between, for rows and columns.
    """
    rank = parse_rank(n_components, shape)
    if rank == "auto" and algorithm != Algorithm.mnpca:
        rank = "paper"
    params = {"robust": True} if robust else {}
    if noise is not None:
        parts = tuple(part.strip() for part in noise.split(","))
        params["noise"] = parts[0] if len(parts) == 1 else parts
    if prior is not None:
        params["prior"] = prior
    if params and algorithm != Algorithm.mnpca:
        raise DataError(f"--{next(iter(params))} belongs to the algorithm mnpca, not {algorithm}.")
    if algorithm == Algorithm.mnpca:
        params["random_state"] = seed
    return getattr(mnpca, _CLASSES[algorithm])(rank, **params)


def parse_rank(text, shape):
    """Return "auto" or a number of components that the shape allows."""
    if text == "auto":
        return "auto"
    try:
        rank = int(text)
    except ValueError:
        raise DataError(f"-k must be 'auto' or a whole number, got {text!r}.") from None
    if not 1 <= rank < min(shape):
        raise DataError(
            f"-k {rank}: the number of components must lie between 1 and {min(shape) - 1} for a "
            f"{shape[0]} x {shape[1]} matrix."
        )
    return rank


class Fitted(NamedTuple):
    """A fit in the units of the data."""

    model: object
    seconds: float
    remarks: list[str]


def fit_table(
    estimator, table, *, scale=False, covariates=None, callback=None, checkpoint=None, resume=False
):
    """Fit the table's values; warnings become remarks."""
    covariates = covariates or {}
    for name in covariates.keys() - inspect.signature(estimator.fit).parameters.keys():
        option = name.replace("_", "-")
        raise DataError(f"--{option}: {type(estimator).__name__} takes no covariates.")
    frame = table.frame() if table.row_names or table.column_names else table.values
    spread = _spread(table) if scale else None
    X = frame / spread if scale else frame
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator.fit(
            X,
            **covariates,
            callback=callback,
            checkpoint=checkpoint,
            resume_from=checkpoint if resume else None,
        )
    seconds = time.perf_counter() - start
    if scale:
        change_units(model, spread)
    remarks = [" ".join(str(w.message).split()) for w in caught]
    return Fitted(model, seconds, list(dict.fromkeys(remarks)))


def _spread(table):
    """Return the standard deviation of each column; refuse those that are no units."""
    with np.errstate(over="ignore", under="ignore"):
        spread = np.nanstd(table.values, axis=0)
    for j in np.flatnonzero(~((spread > SMALLEST_UNIT) & (spread < LARGEST_UNIT)))[:1]:
        raise DataError(
            f"--scale: column {quoted(table.column_name(j))} has a spread of {spread[j]:.3g}, "
            "beyond what its squares can represent; change its units first."
        )
    return spread


def change_units(model, unit):
    """Turn a fit of ``X / unit`` into one of X, exactly.

    With D = diag(unit): the mean becomes D mean, the loadings D W, and the noise precision among
    columns inv(D) B inv(D). Scores, likelihood ratios and the metric W'BW stay as they are.
    """
    model.mean_ = model.mean_ * unit
    model.components_ = model.components_ * unit
    left, right = model.low_rank_
    model.low_rank_ = LowRank(left, right * unit[:, None])
    for name, power in (("full_signal_", 1), ("signal_variance_", 2), ("full_signal_variance_", 2)):
        if getattr(model, name, None) is not None:
            left, right = getattr(model, name)
            setattr(model, name, LowRank(left, right * unit[:, None] ** power))
    if getattr(model, "completed_", None) is not None:
        model.completed_ = model.completed_ * unit
        model.completed_std_ = model.completed_std_ * unit
    if getattr(model, "row_coef_", None) is not None:
        model.row_coef_ = model.row_coef_ * unit
    if getattr(model, "col_covariates_", None) is not None:
        model.col_covariates_ = model.col_covariates_ * np.asarray(unit)[:, None]
    shrink = sp.diags_array(1.0 / np.asarray(unit))
    model.col_precision_ = sp.csr_array(shrink @ model.col_precision_ @ shrink)
