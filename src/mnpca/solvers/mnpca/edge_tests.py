"""Tests of the edges of a fit: the residual that they see."""

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from mnpca._typing import FloatArray
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.edges import EdgeTests, can_test, score_edges
from mnpca.solvers.mnpca.fit import MNPCAFit

#: Larger matrices take their normal scores from a sample of so many cells.
SCORED_CELLS = 100_000
#: The scores of a sample are interpolated between so many of its quantiles, up to this score.
KNOTS = 2001
LARGEST_SCORE = 4.5


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
    white: FloatArray = np.array(Y, dtype=np.float64)
    white -= fit.mean
    white = _root(col, _root(row, white).T).T
    _project(white, left, right)
    white = normal_scores(white)
    _project(white, left, right)
    free = (white.shape[0] - left.shape[1]) * (white.shape[1] - right.shape[1])
    white *= np.sqrt(max(free, 1) / max(float(np.vdot(white, white)), 1e-300))
    white = white.astype(np.float32)
    return _test(row, white, left, right), _test(col, white.T, right, left)


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
    n_observations = effective_observations(_side_by_side(white, repeats), left_over)
    residual = _side_by_side(_inverse_root(noise, white), repeats)
    residual *= np.sqrt(n_observations / left_over.sum())
    hidden = _side_by_side(_inverse_root(noise, taken) / np.sqrt(repeats), repeats)
    return score_edges(residual, hidden, noise.base.precision, n_observations)


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
    squares = np.square(white, dtype=np.float64)
    items, observations = squares.sum(axis=1), squares.sum(axis=0)
    expected = (items.sum() ** 2 - items @ items) * (left_over @ left_over)
    found = (observations @ observations - np.vdot(squares, squares)) * left_over.sum() ** 2
    return float(left_over.sum() * expected / found) if found > 0.0 else 0.0


def normal_scores(matrix: FloatArray) -> FloatArray:
    """Replace every cell by the normal quantile of its rank among all cells."""
    if matrix.size <= SCORED_CELLS:
        ranks = rankdata(matrix).reshape(matrix.shape)
        return np.asarray(ndtri((ranks - 0.5) / matrix.size))
    sample = np.random.default_rng(0).choice(matrix.reshape(-1), SCORED_CELLS)
    scores = np.linspace(-LARGEST_SCORE, LARGEST_SCORE, KNOTS)
    return np.asarray(np.interp(matrix, np.quantile(sample, ndtr(scores)), scores))


def _root(noise: AxisPrecision, thin: FloatArray) -> FloatArray:
    """Return ``P^(1/2) Z``, the symmetric root: every item keeps its place."""
    return noise.unrotate(noise.whiten(thin))


def _inverse_root(noise: AxisPrecision, thin: FloatArray) -> FloatArray:
    """Return ``P^(-1/2) Z``."""
    return noise.color(noise.rotate(thin))


def _basis(thin: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the columns; columns of zeros have none."""
    lengths = np.linalg.norm(thin, axis=0)
    thin = thin[:, lengths > 0.0] / lengths[lengths > 0.0]
    vectors, lengths, _ = np.linalg.svd(thin, full_matrices=False)
    return np.asarray(vectors[:, lengths > 1e-8])


def _project(matrix: FloatArray, left: FloatArray, right: FloatArray) -> None:
    """Take the span of `left` out of the columns and that of `right` out of the rows, in place."""
    matrix -= left @ (left.T @ matrix)
    matrix -= (matrix @ right) @ right.T


def _side_by_side(stacked: FloatArray, repeats: int) -> FloatArray:
    """Put matrices that lie one under the other side by side."""
    return np.ascontiguousarray(np.concatenate(np.split(stacked, repeats), axis=1))
