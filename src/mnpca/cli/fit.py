"""``mnpca fit``: from a data file to a folder of results."""

import contextlib
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from rich.console import Console

from mnpca.cli._data import as_written, load_column_labels, load_covariates, load_table, plain_name
from mnpca.cli._results import export, print_json, print_summary, progress_display
from mnpca.cli.app import Algorithm
from mnpca.diagnostics import SHOWN_RATE
from mnpca.estimators import MNPCA, LikelihoodMNPCA, WassersteinMNPCA
from mnpca.io import DataError, check_folder, new_folder, quoted
from mnpca.model.low_rank import LowRank

#: Scales whose squares, and their inverses, are ordinary numbers.
SMALLEST_UNIT, LARGEST_UNIT = 1e-100, 1e100

_CLASSES = {
    Algorithm.mnpca: MNPCA,
    Algorithm.likelihood: LikelihoodMNPCA,
    Algorithm.wasserstein: WassersteinMNPCA,
}


def fit_file(options):
    """Fit the data file and write the results; `options` are those of the command."""
    out, checkpoint = options.output, options.checkpoint
    out = Path(f"{plain_name(options.data)}-mnpca") if out is None else out
    check_folder(out, overwrite=options.overwrite)
    if options.resume and checkpoint is None:
        raise DataError("--resume needs --checkpoint FILE: the file to go on from.")
    if options.fdr != SHOWN_RATE and options.algorithm != Algorithm.mnpca:
        raise DataError(f"--fdr belongs to the algorithm mnpca, not {options.algorithm}.")
    if not 0.0 < options.fdr <= 1.0:
        raise DataError(f"--fdr must be above 0 and at most 1, got {options.fdr:g}.")
    console = Console(stderr=options.json)
    written = as_written(options)
    table = load_table(
        options.data,
        transpose=options.transpose,
        drop_constant=options.drop_constant,
        labels=options.labels,
        index=options.index,
        columns=tuple(options.columns or ()),
        drop=tuple(options.drop or ()),
        **written,
    )
    groups = None
    if options.column_labels is not None:
        groups = load_column_labels(options.column_labels, table, options.encoding)
    estimator = make_estimator(
        options.algorithm,
        options.n_components,
        table.values.shape,
        noise=options.noise,
        prior=options.prior,
        robust=options.robust,
        seed=options.seed,
    )
    covariates = {
        f"{side}_covariates": load_covariates(file, table, side, **written)
        for side, file in (("row", options.row_covariates), ("col", options.col_covariates))
        if file is not None
    }
    with new_folder(out, overwrite=options.overwrite) as folder:
        with progress_display(console, silent=options.json) as callback:
            fitted = fit_table(
                estimator,
                table,
                scale=options.scale,
                **covariates,
                callback=callback,
                checkpoint=checkpoint,
                resume_from=checkpoint if options.resume and checkpoint.exists() else None,
            )
        summary, document = export(
            folder,
            fitted,
            table,
            source=options.data,
            algorithm=options.algorithm,
            column_labels=groups,
            fdr=options.fdr,
            scaled=options.scale,
            graphml=options.graphml,
        )
    if options.json:
        print_json(summary | {"output": str(out)})
    else:
        print_summary(console, summary, document, out)


def make_estimator(algorithm, n_components, shape, *, noise=None, prior=None, robust=False, seed=0):
    """Return the estimator for an algorithm and ``-k``: "auto" or a number as text.

    MNPCA chooses the rank itself; for the paper's algorithms "auto" is the paper's rule. `noise`
    is a structure as Python takes it, or two with a comma between, for rows and columns.
    """
    rank = _rank(n_components, shape, lowest=0 if algorithm == Algorithm.mnpca else 1)
    params = {"robust": True} if robust else {}
    if noise is not None:
        parts = tuple(part.strip() for part in noise.split(","))
        params["noise"] = parts[0] if len(parts) == 1 else parts
    if prior is not None:
        params["prior"] = prior
    if algorithm == Algorithm.mnpca:
        return _CLASSES[algorithm](rank, random_state=seed, **params)
    for name in params:
        raise DataError(f"--{name} belongs to the algorithm mnpca, not {algorithm}.")
    return _CLASSES[algorithm]("paper" if rank == "auto" else rank)


def _rank(text, shape, lowest):
    """Return "auto", a number of components that the shape allows, or (from 0 on) a share."""
    if text == "auto":
        return "auto"
    with contextlib.suppress(ValueError):
        rank = float(text)
        if lowest <= rank < min(shape) and rank.is_integer():
            return int(rank)
        if lowest == 0 < rank < 1:
            return rank
    share = ", or a share between 0 and 1" if lowest == 0 else ""
    raise DataError(
        f"-k must be 'auto' or a whole number between {lowest} and {min(shape) - 1} for a "
        f"{shape[0]} x {shape[1]} matrix{share}, got {quoted(text)}."
    )


class Fitted(NamedTuple):
    """A fit in the units of the data."""

    model: Any
    seconds: float
    remarks: list[str]


def fit_table(estimator, table, *, scale=False, **params):
    """Fit the table's values, with parameters of ``fit``; warnings become remarks."""
    frame = table.frame() if table.row_names or table.column_names else table.values
    unit = _unit(table) if scale else None
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator.fit(frame / unit if scale else frame, **params)
    seconds = time.perf_counter() - start
    if scale:
        change_units(model, unit)
    remarks = [" ".join(str(w.message).split()) for w in caught]
    return Fitted(model, seconds, list(dict.fromkeys(remarks)))


def _unit(table):
    """Return the standard deviation of each column; refuse those that are no units."""
    with np.errstate(over="ignore", under="ignore"):
        unit = np.nanstd(table.values, axis=0)
    for j in np.flatnonzero(~((unit > SMALLEST_UNIT) & (unit < LARGEST_UNIT))):
        raise DataError(
            f"--scale: column {quoted(table.column_name(j))} has a spread of {unit[j]:.3g}, "
            "beyond what its squares can represent; change its units first."
        )
    return unit


def change_units(model, unit):
    """Turn a fit of ``X / unit`` into one of X, exactly.

    With D = diag(unit): the mean becomes D mean, the loadings D W, and the noise precision among
    columns inv(D) B inv(D). Scores, likelihood ratios and the metric W'BW stay as they are.
    """
    for name in ("mean_", "components_", "completed_", "completed_std_", "row_coef_"):
        if getattr(model, name, None) is not None:
            setattr(model, name, getattr(model, name) * unit)
    powers = {"low_rank_": 1, "full_signal_": 1, "signal_variance_": 2, "full_signal_variance_": 2}
    for name, power in powers.items():
        if getattr(model, name, None) is not None:
            left, right = getattr(model, name)
            setattr(model, name, LowRank(left, right * unit[:, None] ** power))
    if getattr(model, "col_covariates_", None) is not None:
        model.col_covariates_ = model.col_covariates_ * unit[:, None]
    shrink = sp.diags_array(1.0 / unit)
    model.col_precision_ = sp.csr_array(shrink @ model.col_precision_ @ shrink)
