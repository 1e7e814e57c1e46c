"""Tests of the edges of a fit: the residual that they see."""

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from mnpca._typing import FloatArray
from mnpca.engines import thin
from mnpca.engines.rows import TALL, add_up
from mnpca.engines.threads import slices
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.edges import EdgeTests, can_test, score_edges
from mnpca.solvers.mnpca.fit import MNPCAFit

#: Larger matrices take their normal scores from a sample of so many cells.
SCORED_CELLS = 100_000
#: The scores of a sample are interpolated between so many of its quantiles, up to this score.
KNOTS = 2001
LARGEST_SCORE = 4.5
#: Cells that are computed in float64 at a time.
CELLS = 2**20


def edge_tests(Y: FloatArray, fit: MNPCAFit) -> tuple[EdgeTests, EdgeTests]:
    """Test all pairs of rows and all pairs of columns for an edge.

    Parameters
    ----------
    Y : array of shape (n, p)
        The data that were fitted.
    fit : MNPCAFit
        Signal and networks.

    Notes
    -----
    The fit's own residual has the posterior mean of the signal taken off, which leaves a rest of
    signal, and adds the uncertainty of the signal instead. A test needs noise alone. So here the
    whitened data ``A^(1/2) (Y - 1 mean') B^(1/2)`` are projected on what is orthogonal to the
    whitened scores and mean, and to the whitened loadings. An error of the scores leaves nothing
    there without an error of the loadings too. The columns see n - k - 1 independent rows, the rows
    p - k columns, and `effective_observations` says what these are worth.

    Cells of the white matrix are replaced by their normal scores: these are the cells themselves
    where the noise is normal, and heavy tails do not pass for edges where it is not.
    """
    row, col = fit.row_noise, fit.col_noise
    left = fit.scores
    if fit.centered:
        left = np.column_stack([left, np.ones(len(left))])
    left, right = _basis(_root(row, left)), _basis(_root(col, fit.loadings))
    white = _whitened(Y, fit)
    _project(white, left, right)
    _take_normal_scores(white)
    _project(white, left, right)
    free = (white.shape[0] - left.shape[1]) * (white.shape[1] - right.shape[1])
    squares = sum(float(np.sum(np.square(rows, dtype=np.float64))) for rows in _blocks(white))
    white *= np.sqrt(max(free, 1) / max(squares, 1e-300))
    return _test(row, white, left, right), _test(col, white.T, right, left)


def _whitened(Y: FloatArray, fit: MNPCAFit) -> FloatArray:
    """Return ``A^(1/2) (Y - 1 mean') B^(1/2)`` up to a factor, in float32; float64 in between.

    Columns are divided by their size before the first root, and all by that of the first rows after
    the second one: float32 does not hold every unit.
    """
    white: FloatArray = np.empty(Y.shape, np.float32)
    sizes = np.ones((Y.shape[1], 1))
    for part in slices(Y.shape[1], max(CELLS // len(Y), 1)):
        centered = Y[:, part] - fit.mean[part]
        sizes[part, 0] = np.abs(centered).max(axis=0)
        sizes[part][sizes[part] == 0.0] = 1.0
        white[:, part] = _root(fit.row_noise, centered / sizes[part, 0])
    unit = 0.0
    for rows in _blocks(white):
        rooted = _root(fit.col_noise, rows.T * sizes)
        unit = unit or float(np.abs(rooted).max()) or 1.0
        rows[:] = (rooted / unit).T
    return white


def _blocks(matrix: FloatArray) -> list[FloatArray]:
    """Return the matrix as views of some rows each."""
    return [matrix[part] for part in slices(len(matrix), max(CELLS // matrix.shape[1], 1))]


def _test(
    noise: AxisPrecision, white: FloatArray, taken: FloatArray, observed: FloatArray
) -> EdgeTests:
    """Test the pairs of one axis.

    The signal has taken of the white matrix what lies in the span of `taken`, and of its rows what
    lies in that of `observed`.
    """
    size, repeats = noise.base.size, noise.n_repeats
    left_over = np.tile(1.0 - np.einsum("lk,lk->l", observed, observed), repeats)
    if not can_test(size, left_over.sum()):
        return EdgeTests.none(size)
    white = _side_by_side(white, repeats)
    n_observations = effective_observations(white, left_over)
    residual = _inverse_root(noise.base, _condensed(white))
    residual *= np.sqrt(n_observations / left_over.sum())
    hidden = _side_by_side(_inverse_root(noise, taken) / np.sqrt(repeats), repeats)
    return score_edges(residual, hidden, noise.base.precision, n_observations)


def _condensed(items: FloatArray) -> FloatArray:
    """Return items with the same products; of long ones (q x l), the q x q root of ``X X'``."""
    size, length = items.shape
    if length < TALL * size:
        return items
    parts = (items[:, part] for part in slices(length, max(CELLS // size, 1)))
    products = add_up(part @ part.T for part in (each.astype(np.float64) for each in parts))
    values, vectors = np.linalg.eigh(products)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def effective_observations(white: FloatArray, left_over: FloatArray) -> float:
    """Return how many normal observations of equal variance the columns of a matrix are worth.

    The correlation of two independent items varies by ``sum d_l^2 / (sum d_l)^2``, d_l the variance
    of observation l, and ``sum_(i != j) x_il^2 x_jl^2`` estimates d_l^2 without bias. Where the fit
    has scaled the observations to the same length over the q items, that is ``q / (q + 2)`` of
    what it is where they have the same variance.

    Parameters
    ----------
    white : array of shape (q, l)
        Independent items in rows.
    left_over : array of shape (l,)
        Share of every observation that was not taken by the signal. Equal observations would be
        worth their sum.
    """
    items, products = np.zeros(len(white)), 0.0
    for part in slices(white.shape[1], max(CELLS // len(white), 1)):
        squares = np.square(white[:, part], dtype=np.float64)
        items += squares.sum(axis=1)
        observations = squares.sum(axis=0)
        products += float(observations @ observations - np.vdot(squares, squares))
    expected = (items.sum() ** 2 - items @ items) * (left_over @ left_over)
    found = products * left_over.sum() ** 2
    return float(left_over.sum() * expected / found) if found > 0.0 else 0.0


def _take_normal_scores(matrix: FloatArray) -> None:
    """Replace every cell by the normal quantile of its rank among all cells, in place."""
    if matrix.size <= SCORED_CELLS:
        ranks = rankdata(matrix).reshape(matrix.shape)
        matrix[:] = ndtri((ranks - 0.5) / matrix.size)
        return
    sample = np.random.default_rng(0).choice(matrix.reshape(-1), SCORED_CELLS)
    scores = np.linspace(-LARGEST_SCORE, LARGEST_SCORE, KNOTS)
    knots = np.quantile(sample, ndtr(scores))
    for rows in _blocks(matrix):
        rows[:] = np.interp(rows, knots, scores)


def _root(noise: AxisPrecision, items: FloatArray) -> FloatArray:
    """Return ``P^(1/2) Z``, the symmetric root: every item keeps its place."""
    return noise.unrotate(noise.whiten(items))


def _inverse_root(noise: AxisPrecision, items: FloatArray) -> FloatArray:
    """Return ``P^(-1/2) Z``."""
    return noise.color(noise.rotate(items))


def _basis(factor: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the columns; columns of zeros have none."""
    lengths = np.linalg.norm(factor, axis=0)
    factor = factor[:, lengths > 0.0] / lengths[lengths > 0.0]
    vectors, lengths, _ = np.linalg.svd(factor, full_matrices=False)
    return np.asarray(vectors[:, lengths > 1e-8])


def _project(matrix: FloatArray, left: FloatArray, right: FloatArray) -> None:
    """Take the span of `left` out of the columns and that of `right` out of the rows, in place."""
    within = thin.inner(left, matrix)
    start = 0
    for rows in _blocks(matrix):
        rest = rows - left[start : start + len(rows)] @ within
        rows[:] = rest - (rest @ right) @ right.T
        start += len(rows)


def _side_by_side(stacked: FloatArray, repeats: int) -> FloatArray:
    """Put matrices that lie one under the other side by side."""
    return stacked if repeats == 1 else np.concatenate(np.split(stacked, repeats), axis=1)
