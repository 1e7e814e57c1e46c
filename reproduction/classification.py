"""How good a classifier the scores of a method give: the paper's protocol and a nested one."""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_selection import VarianceThreshold
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mnpca.selection.rank import paper_rank
from reproduction.baselines import LSSVMClassifier, make_reducer
from reproduction.baselines._kernel_system import (
    held_out_decisions,
    rbf_kernel,
    squared_distances,
)
from reproduction.baselines._tuning import (
    all_are_right,
    largest_is_right,
    least_error_each,
    one_against_rest,
    trials,
    tuning_rows,
)

FOLDS = 5
# Up to this many rows every run is tuned by itself.
SHARED_TUNING = 900


class Accuracy(NamedTuple):
    """Accuracies in per cent over the repeats.

    Attributes
    ----------
    decided : array
        A row counts as right when its machine claims it and no other does (the paper's count).
    largest : array
        A row counts as right when its machine has the largest value.
    """

    decided: np.ndarray
    largest: np.ndarray


def paper_protocol(scores, labels, *, runs=10, seed=0):
    """Accuracy of an RBF least-squares SVM on given scores, as the paper measured it.

    The scores come from all rows. A run tunes every one-against-rest machine by itself, by the
    squared error of 5-fold cross-validation, then measures the accuracy by 5-fold
    cross-validation on new folds. Above 900 rows the runs share one tuning, on at most 1000
    rows. The test rows have taken part in the reduction and in the tuning, so the figure is
    optimistic.

    Parameters
    ----------
    scores : array of shape (n, k)
        Low-dimensional representation of all rows.
    labels : array of shape (n,)
        Classes.
    runs : int, default=10
        Runs to average over.
    seed : int, default=0
        Of the folds.
    """
    rng = np.random.RandomState(seed)
    classes, codes = np.unique(labels, return_inverse=True)
    targets = one_against_rest(codes, len(classes))
    squared = squared_distances(scores, scores)
    rows = tuning_rows(len(targets), rng)
    tunings = runs if len(targets) <= SHARED_TUNING else 1
    splits = [_random_folds(len(rows), rng) for _ in range(tunings)]
    candidates = trials(squared[np.ix_(rows, rows)], targets[rows], splits=splits)
    settings = least_error_each(candidates, targets[rows])
    if tunings == 1:
        settings *= runs
    folds = [_random_folds(len(targets), rng) for _ in range(runs)]
    decisions = _held_out_decisions(squared, targets, settings, folds)
    return Accuracy(
        np.array([100 * all_are_right(values, targets).mean() for values in decisions]),
        np.array([100 * largest_is_right(values, targets).mean() for values in decisions]),
    )


def _held_out_decisions(squared, targets, settings, folds):
    """Decision values (runs x n x m) of every machine at its setting of the run."""
    decisions = np.empty((len(folds), *targets.shape))
    for setting in {setting for run in settings for setting in run}:
        users = [
            (run, machine)
            for run, chosen in enumerate(settings)
            for machine, own in enumerate(chosen)
            if own == setting
        ]
        machines = sorted({machine for _, machine in users})
        runs = sorted({run for run, _ in users})
        kernel = rbf_kernel(squared, setting.width)
        values = held_out_decisions(
            kernel, setting.regularization, targets[:, machines], [folds[run] for run in runs]
        )
        for run, machine in users:
            decisions[run, :, machine] = values[runs.index(run)][:, machines.index(machine)]
    return decisions


def nested_protocol(X, labels, method, *, seed=0):
    """Accuracies of the outer folds when nothing has seen the test rows.

    Scaling, rank, reduction and tuning are fitted inside the training folds; the test rows get
    their scores by ``transform``.

    Parameters
    ----------
    X : array of shape (n, p)
        Features as measured.
    labels : array of shape (n,)
        Classes.
    method : str
        Name in the registry of methods.
    seed : int, default=0
        Of the outer folds and of whatever is random.

    Returns
    -------
    array
        Accuracy in per cent of each outer fold.
    """
    pipeline = make_pipeline(
        VarianceThreshold(),
        StandardScaler(),
        PaperRankReducer(method, seed),
        LSSVMClassifier(cv=FOLDS, random_state=seed),
    )
    smallest_class = np.unique(labels, return_counts=True)[1].min()
    outer = StratifiedKFold(min(FOLDS, smallest_class), shuffle=True, random_state=seed)
    return 100 * cross_val_score(pipeline, X, labels, cv=outer, error_score="raise")


class PaperRankReducer(TransformerMixin, BaseEstimator):
    """A method of the registry at the rank that the paper's rule finds in the training rows.

    Parameters
    ----------
    method : str
        Name in the registry.
    random_state : int, default=0
        For methods that are random.
    """

    def __init__(self, method="PCA", random_state=0):
        self.method = method
        self.random_state = random_state

    def fit(self, X, y=None):
        """Find the rank and fit the method."""
        rank = paper_rank(X - X.mean(axis=0))
        self.reducer_ = make_reducer(self.method, rank, random_state=self.random_state)
        self.reducer_.fit(X)
        return self

    def transform(self, X):
        """Return the scores of rows."""
        return self.reducer_.transform(X)


def _random_folds(n_rows, rng):
    return np.array_split(rng.permutation(n_rows), FOLDS)
