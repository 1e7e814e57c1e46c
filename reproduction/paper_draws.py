"""The synthetic data of the MN-PCA paper themselves: what its program draws from its seeds."""

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from mnpca.datasets._noise import color_rows, rotate, upper_factors
from reproduction.matlab_stream import MatlabStream

#: Seeds of the paper's repeats.
SMALL_RUNS, LARGE_RUNS = tuple(range(1, 11)), tuple(range(1, 6))


def paper_draw_small(c, run):
    """One of the paper's ten small data sets with a condition number, entry by entry.

    The program seeds MATLAB's stream with 1 to 10 and draws the order of the rows, the two
    precisions and the noise from it; `MatlabStream` draws the same numbers. Two things are not as
    the paper says, and are kept: the first centroid has 21 ones at its end, and the noise is
    E = La Z Lb, not La Z Lb'. The data of one seed have the same graphs at every c.

    Parameters
    ----------
    c : float
        Condition number; the paper has 8, 16, 32, 64, 96, 128, 160, 192 and 224.
    run : int
        Repeat, 1 to 10.

    Returns
    -------
    Bunch
        Y, signal, labels, row_precision, col_precision (the sparse one that the paper scored
        against) and noise_col_precision (the one that the noise has).

    Examples
    --------
    >>> from reproduction.paper_draws import paper_draw_small
    >>> data = paper_draw_small(8, run=1)
    >>> data.Y.shape, [int((data.labels == group).sum()) for group in range(3)]
    ((300, 200), [100, 100, 100])
    """
    centroids = np.zeros((3, 200))
    centroids[0, :20], centroids[0, -21:] = 1, 1
    centroids[1, :20], centroids[1, -20:] = -1, -1
    centroids[2, :20], centroids[2, -20:] = 1, -1
    return _draw(centroids, (100, 100, 100), c, (0.01, 0.01), run)


def paper_draw_large(p, run):
    """One of the paper's five large data sets of a size, entry by entry; see `paper_draw_small`.

    1000 rows in groups of 300, 300 and 400, c = 196. The program's centroids differ from the
    paper's text: ones on the first tenth of the features; minus ones on the last tenth; ones on
    both (a last tenth has one feature more).

    Parameters
    ----------
    p : int
        Features; the paper has 2000, 3000, 4000, 5000 and 6000.
    run : int
        Repeat, 1 to 5.

    Returns
    -------
    Bunch
        As `paper_draw_small` gives it.
    """
    width = int(np.ceil(p * 0.1))
    centroids = np.zeros((3, p))
    centroids[0, :width] = 1
    centroids[1, -width - 1 :] = -1
    centroids[2, :width], centroids[2, -width - 1 :] = 1, 1
    return _draw(centroids, (300, 300, 400), 196.0, (1e-2, 1e-3), run)


def _draw(centroids, sizes, c, densities, run):
    """Draw in the order of the program; every draw moves the stream."""
    stream = MatlabStream(run)
    labels = np.repeat([0, 1, 2], sizes)[stream.permutation(sum(sizes))]
    signal = centroids[labels]
    stream.normal(signal.shape)  # a scatter within the groups, which the program multiplies by 0
    row_precision = _precision(stream, signal.shape[0], densities[0], c)
    col_precision = _precision(stream, signal.shape[1], densities[1], c)
    white = stream.normal(signal.shape)
    lower = color_rows(col_precision, np.eye(signal.shape[1]))
    return Bunch(
        Y=signal + color_rows(row_precision, white) @ lower,
        signal=signal,
        labels=labels,
        row_precision=row_precision,
        col_precision=col_precision,
        noise_col_precision=_swapped(col_precision),
    )


def _precision(stream, size, density, c):
    """Rotate decaying eigenvalues in random planes, then scale to a unit diagonal.

    The same recipe as `random_sparse_precision`, with the stream's numbers in its own order.
    """
    matrix = np.diag((1.0 / c) ** (np.arange(size) / (size - 1)))
    nonzeros, wanted = size, 0.95 * round(density * size**2)
    while nonzeros < wanted:
        angle, first, second = stream.uniform(3)
        i, j = int(first * size), int(second * size)
        while j == i:
            j = int(stream.uniform(1)[0] * size)
        angle = (2 * angle - 1) * np.pi
        nonzeros += rotate(matrix, i, j, np.cos(angle), -np.sin(angle))
    scale = 1.0 / np.sqrt(np.diag(matrix))
    return sp.csr_array(matrix * scale[:, None] * scale)


def _swapped(precision):
    """Return U'U for precision = U U': the precision of the columns of Z L, L = inv(U)'."""
    swapped = sp.lil_array(sp.diags_array(precision.diagonal()))
    for items, upper in upper_factors(precision):
        swapped[np.ix_(items, items)] = upper.T @ upper
    return sp.csr_array(swapped)
