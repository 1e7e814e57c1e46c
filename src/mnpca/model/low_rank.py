"""The signal as two thin factors, and the rule for its signs."""

from typing import NamedTuple

import numpy as np

from mnpca._typing import FloatArray


class LowRank(NamedTuple):
    """A matrix ``left @ right.T`` kept as its factors, n x k and p x k.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca import LowRank
    >>> LowRank(np.ones((2, 1)), np.array([[1.0], [3.0]])).dense().tolist()
    [[1.0, 3.0], [1.0, 3.0]]
    """

    left: FloatArray
    right: FloatArray

    def dense(self) -> FloatArray:
        """Return the n x p matrix itself."""
        product: FloatArray = self.left @ self.right.T
        return product


def fix_signs(scores: FloatArray, loadings: FloatArray) -> LowRank:
    """Make the largest absolute loading of each component positive.

    Both factors change sign together, so their product stays. Ties go to the first feature.
    """
    if loadings.shape[1] == 0:
        return LowRank(scores, loadings)
    largest = np.argmax(np.abs(loadings), axis=0)
    sign = np.where(loadings[largest, np.arange(loadings.shape[1])] < 0, -1.0, 1.0)
    return LowRank(scores * sign, loadings * sign)


def components_for_share(singular_values: FloatArray, share: float) -> int:
    """Return how many leading components have this share of the squared singular values."""
    cumulative = np.cumsum(singular_values**2)
    return int(np.searchsorted(cumulative, share * cumulative[-1:].sum())) + 1
