"""Least-squares support vector machine with a Gaussian kernel."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from reproduction.baselines._kernel_system import KernelSystem, rbf_kernel, squared_distances
from reproduction.baselines._tuning import most_accurate, one_against_rest, trials, tuning_rows


class LSSVMClassifier(ClassifierMixin, BaseEstimator):
    """Least-squares SVM with a Gaussian kernel, one machine per class against the rest.

    A machine minimizes ``w'w/2 + g/2 sum_i (y_i - w'phi(x_i) - b)^2`` with targets y = +1, -1.
    Its held-out residuals are known in closed form, so tuning never refits: one
    eigendecomposition of the kernel serves every regularization g and every fold.

    Parameters
    ----------
    width : float or "tune", default="tune"
        Width s of the kernel ``exp(-d^2 / (2 s^2))``.
    regularization : float or "tune", default="tune"
        Weight g of the errors; larger fits the training rows more closely.
    cv : int or "loo", default="loo"
        How "tune" holds rows out: one at a time, or in this many random folds.
    random_state : int, RandomState instance or None, default=None
        Source of the folds, and of the rows to tune on where there are more than 1000.

    Attributes
    ----------
    classes_ : ndarray
        Class labels.
    width_, regularization_ : float
        Values in use.
    tuning_accuracy_ : float
        Accuracy of held-out rows at these values; nan when nothing was tuned.
    dual_coef_ : ndarray of shape (n_samples, n_machines)
        Coefficients of the kernel expansion; one machine serves two classes.
    intercept_ : ndarray of shape (n_machines,)
        Biases.

    References
    ----------
    J. A. K. Suykens and J. Vandewalle, Least squares support vector machine classifiers, Neural
    Processing Letters 9, 1999. G. C. Cawley and N. L. C. Talbot, Fast exact leave-one-out
    cross-validation of sparse least-squares support vector machines, Neural Networks 17, 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from reproduction.baselines import LSSVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(LSSVMClassifier().fit(X, y).tuning_accuracy_ > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "width": [Interval(Real, 0, None, closed="neither"), StrOptions({"tune"})],
        "regularization": [Interval(Real, 0, None, closed="neither"), StrOptions({"tune"})],
        "cv": [Interval(Integral, 2, None, closed="left"), StrOptions({"loo"})],
        "random_state": ["random_state"],
    }

    def __init__(self, *, width="tune", regularization="tune", cv="loo", random_state=None):
        self.width = width
        self.regularization = regularization
        self.cv = cv
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y):
        """Fit the machines, tuning what is to be tuned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels, at least two different ones.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y needs at least two classes, got {len(self.classes_)} class.")
        targets = one_against_rest(codes, len(self.classes_))
        squared = squared_distances(X, X)
        self._choose_settings(squared, targets)
        system = KernelSystem(rbf_kernel(squared, self.width_))
        self.dual_coef_, self.intercept_ = system.fit(self.regularization_, targets)
        self._rows = X
        return self

    def _choose_settings(self, squared, targets):
        """Set width, regularization and the held-out accuracy behind the choice."""
        if self.width != "tune" and self.regularization != "tune":
            self.width_, self.regularization_ = float(self.width), float(self.regularization)
            self.tuning_accuracy_ = float("nan")
            return
        rng = check_random_state(self.random_state)
        rows = tuning_rows(len(targets), rng)
        squared, targets = squared[np.ix_(rows, rows)], targets[rows]
        candidates = trials(
            squared,
            targets,
            splits=self._splits(len(targets), rng),
            widths=None if self.width == "tune" else [self.width],
            regularizations=None if self.regularization == "tune" else [self.regularization],
        )
        setting, self.tuning_accuracy_ = most_accurate(candidates, targets)
        self.width_, self.regularization_ = setting

    def _splits(self, n_rows, rng):
        if self.cv == "loo" or self.cv >= n_rows:
            return None
        return [np.array_split(rng.permutation(n_rows), self.cv)]

    def decision_function(self, X):
        """Return the machines' values, one column per class (one value for two classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        kernel = rbf_kernel(squared_distances(X, self._rows), self.width_)
        values = kernel @ self.dual_coef_ + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X):
        """Return the class with the largest machine value."""
        values = self.decision_function(X)
        codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[codes]
