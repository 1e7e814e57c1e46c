"""Choosing the kernel width and the regularization of a least-squares SVM."""

from typing import NamedTuple

import numpy as np

from reproduction.baselines._kernel_system import KernelSystem, rbf_kernel

#: Kernel widths tried, as multiples of the median distance between rows.
WIDTHS = 2.0 ** np.arange(-4, 3.5, 0.5)
#: Regularizations tried.
REGULARIZATIONS = 10.0 ** np.arange(-2, 5.5, 0.5)
#: Tuning looks at this many rows at most: its cost grows with their third power.
MOST_ROWS = 1000


class Setting(NamedTuple):
    """Hyper-parameters of a machine."""

    width: float
    regularization: float


def typical_distance(squared):
    """Median distance between different rows; 1 where all rows coincide.

    Distances of rounding errors (1e-10 of the largest) are none.
    """
    apart = squared[squared > 1e-20 * squared.max(initial=0.0)]
    # A hundred thousand pairs tell the median of millions.
    return float(np.sqrt(np.median(apart[:: max(1, len(apart) // 100_000)]))) if len(apart) else 1.0


def tuning_rows(n_rows, rng):
    """Return the rows that tuning looks at: all, or a random `MOST_ROWS` of them."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, MOST_ROWS, replace=False))


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


def trials(squared, targets, *, splits=None, widths=None, regularizations=None):
    """Yield (setting, held-out decisions of every split) for every pair of hyper-parameters.

    Parameters
    ----------
    squared : array of shape (n, n)
        Squared distances between the rows.
    targets : array of shape (n, m)
        See `one_against_rest`.
    splits : list of lists of index arrays, default=None
        Ways to split the rows into folds; None holds out one row at a time.
    widths, regularizations : sequence of float, default=None
        Values to try; None for `WIDTHS` times the typical distance, and `REGULARIZATIONS`.
    """
    if widths is None:
        widths = WIDTHS * typical_distance(squared)
    for width in widths:
        system = KernelSystem(rbf_kernel(squared, width))
        for regularization in REGULARIZATIONS if regularizations is None else regularizations:
            if splits is None:
                decisions = [system.leave_one_out(regularization, targets)]
            else:
                decisions = [
                    system.leave_folds_out(regularization, targets, folds) for folds in splits
                ]
            yield Setting(float(width), float(regularization)), decisions


def squared_error(decisions, targets):
    """Mean squared error of each machine."""
    return ((decisions - targets) ** 2).mean(axis=0)


def most_accurate(candidates, targets):
    """Return one setting for all machines and its accuracy; ties go to the smaller error."""
    best, best_rank = None, (-1.0, 0.0)
    for setting, (decisions,) in candidates:
        accuracy = float(largest_is_right(decisions, targets).mean())
        rank = (accuracy, -float(squared_error(decisions, targets).mean()))
        if rank > best_rank:
            best, best_rank = setting, rank
    return best, best_rank[0]


def least_error_each(candidates, targets):
    """Return, for every split, a list with the setting of least squared error of each machine."""
    settings, errors = [], []
    for setting, decisions in candidates:
        settings.append(setting)
        errors.append([squared_error(values, targets) for values in decisions])
    best = np.argmin(errors, axis=0)
    return [[settings[machine] for machine in split] for split in best]
