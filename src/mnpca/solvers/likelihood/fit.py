"""The likelihood algorithm: block descent on the penalized likelihood (the paper's MRL)."""

from collections import deque
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines import engine_for
from mnpca.engines.arrays import Array, diagonal_matrix, is_foreign_array, like, to_numpy
from mnpca.model.gpca import Gpca, identify
from mnpca.model.metric import Metric
from mnpca.model.objective import Penalty
from mnpca.model.sparse import normalize_gauge, tile
from mnpca.model.sparse_data import SparseMinusLowRank
from mnpca.noise.estimate import row_col_scales
from mnpca.solvers.likelihood.blocks import (
    Iterate,
    LowRankStep,
    Shares,
    check_bounded,
    closed_form,
    col_step,
    exact_shares,
    gauge_step,
    row_step,
    signal_step,
)
from mnpca.solvers.progress import (
    Progress,
    Report,
    State,
    inner_state,
    nested,
    pack,
    silent,
    unpack,
)

Start: TypeAlias = Literal["best", "svd", "scales"]


def fit_likelihood(
    data: FloatArray,
    rank: int,
    penalty: Penalty,
    *,
    start: Start = "best",
    report: Report = silent,
    resume: State | None = None,
    **options: Any,
) -> Iterate:
    """Minimize `mnpca.model.objective.objective` over X, W, A and B in turn.

    It begins with the truncated SVD of Y, with that of Y with its rows and columns scaled to equal
    mean squares, or with both; then the lower end is kept. The options are those of `descend`.
    """
    starts: list[Start] = ["svd", "scales"] if start == "best" else [start]
    if not (penalty.row_on or penalty.col_on):  # the SVD is the solution
        starts = ["svd"]
    ends: list[Iterate] = []
    if resume is not None:
        ends = unpack(list[Iterate], resume["ends"], data)
    inner = inner_state(resume)
    told = nested(report, lambda: {"ends": pack(ends)})
    for name in starts[len(ends) :]:
        end = descend(data, rank, penalty, name, report=told, resume=inner, **options)
        ends.append(replace(end, row_start=None, col_start=None))
        inner = None
    return min(ends, key=lambda end: end.history[-1])


def identified(fit: Iterate, unit: float) -> tuple[sp.csr_array, sp.csr_array, Gpca]:
    """Return A, B and the signal of data of which `unit` was the unit, in the model's form.

    The precisions have the gauge ``logdet A = 0``, the signal that of generalized PCA; all of them
    are in the host's memory.
    """
    precisions = (
        sp.csr_array(to_numpy(side)) if is_foreign_array(side) else side
        for side in (fit.row_precision, fit.col_precision / unit**2)
    )
    row, col = normalize_gauge(*precisions)
    scores, loadings = map(to_numpy, fit.signal)
    metrics = Metric(len(scores), tile(row, len(scores))), Metric(len(loadings), col)
    return row, col, identify(scores * unit, loadings, *metrics)


def descend(
    data: FloatArray,
    rank: int,
    penalty: Penalty,
    start: Start,
    *,
    low_rank_step: LowRankStep = "als",
    tol: float = 1e-5,
    max_iter: int = 200,
    n_matrices: int = 1,
    report: Report = silent,
    resume: State | None = None,
) -> Iterate:
    """Descend from one start, until the objective changes by at most `tol`.

    The row precision, the column precision, their common scale, then scores and loadings, by
    alternating least squares or in closed form. The precisions are solved ten times as accurately.
    Where the penalties do not determine the scale, it is held at ``logdet A = 0``. There are
    `n_matrices` in `data`, one under the other.
    """
    if resume is None:
        iterate = begin(data, rank, penalty, start, n_matrices)
        iterate = replace(iterate, history=(iterate.value(data, penalty),))
    else:
        iterate = unpack(Iterate, resume, data)
    shares: deque[Shares] = deque(maxlen=3)
    while not iterate.converged and len(iterate.history) <= max_iter:
        iterate = row_step(data, iterate, penalty, tol=0.1 * tol)
        iterate = col_step(data, iterate, penalty, tol=0.1 * tol)
        iterate = gauge_step(data, iterate, penalty)
        iterate = signal_step(data, iterate, penalty, low_rank_step)
        shares.append(exact_shares(data, iterate, penalty))
        check_bounded(shares)
        before, value = iterate.history[-1], iterate.value(data, penalty)
        converged = before - value <= tol * max(1.0, abs(value))
        iterate = replace(iterate, history=(*iterate.history, value), converged=converged)
        number = len(iterate.history) - 1
        state = partial(pack, iterate)
        report(Progress(f"likelihood, from {start}", number, value, state, max_iter))
    return iterate


def begin(
    data: FloatArray, rank: int, penalty: Penalty, start: Start, n_matrices: int = 1
) -> Iterate:
    """Return identity precisions and the signal of the named start, its factors balanced.

    Correlated noise of large variance is in the first components of an SVD, and the descent does
    not leave it. Scaled rows and columns show the signal first in most of these cases.
    """
    n, p = data.shape
    identity = _diagonal(np.ones(n // n_matrices), data), _diagonal(np.ones(p), data)
    if start == "svd":
        return Iterate(closed_form(data, rank), *identity)
    if isinstance(data, SparseMinusLowRank):
        engine = engine_for(data.matrix).standardized(data.right[:, 0], np.ones(p))
    else:
        engine = engine_for(data)
    scales = row_col_scales(engine, n_repeats=n_matrices)
    row, col = (
        _diagonal(side.base.weights, data) if on else plain
        for side, plain, on in zip(scales, identity, (penalty.row_on, penalty.col_on), strict=True)
    )
    signal = closed_form(data, rank, tile(row, n), col, penalty.ridge)
    return Iterate(signal, *identity)


def _diagonal(values: FloatArray, data: Array) -> Any:
    """Return a diagonal precision: sparse, or dense where the data live."""
    if is_foreign_array(data):
        return diagonal_matrix(like(values, data))
    return sp.csr_array(sp.diags_array(values))
