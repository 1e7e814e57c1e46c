"""Choosing the kernel width and the regularisation of a least-squares SVM."""

from typing import NamedTuple

import numpy as np

from mnpca.baselines._kernel_system import KernelSystem, rbf_kernel

#: Kernel widths tried, as multiples of the median distance between rows.
WIDTHS = 2.0 ** np.arange(-4, 3.5, 0.5)
#: Regularisations tried.
REGULARIZATIONS = 10.0 ** np.arange(-2, 5.5, 0.5)


class Tuned(NamedTuple):
    """The chosen hyper-parameters and the accuracy of held-out rows they reached."""

    width: float
    regularization: float
    accuracy: float


def typical_distance(squared):
    """Median distance between different rows; 1 where all rows coincide."""
    apart = squared[squared > 0]
    # A hundred thousand pairs tell the median of millions.
    return float(np.sqrt(np.median(apart[:: max(1, len(apart) // 100_000)]))) if len(apart) else 1.0


def one_against_rest(codes, n_classes):
    """Return targets +1 and -1, a column per machine (one machine for two classes)."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def largest_is_right(decisions, targets):
    """Say for each row whether the machine with the largest value is the right one."""
    if targets.shape[1] == 1:
        return (decisions[:, 0] > 0) == (targets[:, 0] > 0)
    return decisions.argmax(axis=1) == targets.argmax(axis=1)


def all_are_right(decisions, targets):
    """Say for each row whether every machine has the right sign.

    This is decoding by Hamming distance with ties counted as errors: a row that no class or
    more than one class claims is undecided, hence wrong.
    """
    return ((decisions > 0) == (targets > 0)).all(axis=1)


def tune(squared, targets, *, folds=None, is_right=largest_is_right, widths=None, regs=None):
    """Return the pair with the best accuracy on held-out rows.

    Parameters
    ----------
    squared : array of shape (n, n)
        Squared distances between the rows.
    targets : array of shape (n, m)
        See `one_against_rest`.
    folds : list of index arrays, default=None
        Rows held out together; None holds out one row at a time.
    is_right : callable
        Says which rows of (decisions, targets) are classified correctly.
    widths, regs : sequence of float, default=None
        Values to try; None for `WIDTHS` times the typical distance, and `REGULARIZATIONS`.
    """
    if widths is None:
        widths = WIDTHS * typical_distance(squared)
    best = Tuned(0.0, 0.0, -1.0)
    # From smooth to rough, so that a tie goes to the smoother machine.
    for width in sorted(widths, reverse=True):
        system = KernelSystem(rbf_kernel(squared, width))
        for regularization in sorted(REGULARIZATIONS if regs is None else regs):
            if folds is None:
                decisions = system.leave_one_out(regularization, targets)
            else:
                decisions = system.leave_folds_out(regularization, targets, folds)
            accuracy = float(is_right(decisions, targets).mean())
            if accuracy > best.accuracy:
                best = Tuned(float(width), float(regularization), accuracy)
    return best
