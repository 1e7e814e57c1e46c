"""Difficult data: the right answer or an error that names the remedy, never anything between."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from tests.reliability.shared import are_finite, fitted, make, numbers, sample


def at(X, value):
    """X with one entry replaced."""
    X = X.copy()
    X[3, 3] = value
    return X


def fit_and_check(model, X):
    """Fit; then nothing is NaN, nothing was written to X, and convergence is not a secret."""
    before = X.copy()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.filterwarnings("always", "n_components=")
        try:
            model.fit(X)
        finally:
            assert before.tobytes() == X.tobytes(), "fit changed its input"
    assert are_finite(model)
    told = any(issubclass(each.category, ConvergenceWarning) for each in caught)
    assert getattr(model, "converged_", True) or told, "silent non-convergence"
    for method in ("transform", "score_samples"):
        if hasattr(model, method):
            assert np.isfinite(getattr(model, method)(X)).all(), method
    if hasattr(model, "denoise"):
        assert np.isfinite(model.denoise()).all()
    return model


def assert_same_fit(one, other, rtol=1e-8):
    a, b = fitted(one), fitted(other)
    assert a.keys() == b.keys()
    for key in a:
        assert_allclose(numbers(a[key]), numbers(b[key]), rtol=rtol, atol=1e-12, err_msg=key)


REFUSED = {
    "NaN": (lambda X: at(X, np.nan), "NaN"),
    "infinity": (lambda X: at(X, np.inf), "infinity"),
    "all zero": (lambda X: 0 * X, "zero everywhere.*Check how X was read"),
    "all rows equal": (lambda X: np.tile(X[0], (9, 1)), "All rows of X are the same.*Check how"),
    "all entries equal": (lambda X: np.full_like(X, 3.0), "All rows of X are the same"),
    "values at 1e300": (lambda X: 1e300 * X, "Rescale X"),
    "values at 1e-300": (lambda X: 1e-300 * X, "Rescale X"),
    "one row": (lambda X: X[:1], "minimum of 2 is required"),
    "no rows": (lambda X: X[:0], "minimum of"),
    "no columns": (lambda X: X[:, :0], "minimum of 1 is required"),
    "text": (lambda X: X.astype(str)[:, :1] + "a", "could not convert"),
    "complex": (lambda X: X + 1j, "Complex data"),
    "one dimension": (lambda X: X[0], "Expected 2D array"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_reason(name, case):
    change, message = REFUSED[case]
    model = make(name)
    if "missing" in model.get_params():
        model.set_params(missing="error")  # NaN is a missing value by default
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model.fit(change(sample()))


def constant(X, axis):
    X = X.copy()
    X[(slice(None), 2) if axis == 1 else 2] = 1.7
    return X


def heavy(X):
    return np.random.default_rng(5).standard_t(1.5, size=X.shape)


FITTED = {
    "duplicated rows": lambda X: np.vstack([X, X[:6]]),
    "duplicated columns": lambda X: np.hstack([X, X[:, :3]]),
    "duplicated twice": lambda X: np.vstack([X, X, X]),
    "constant row": lambda X: constant(X, 0),
    "more columns than rows": lambda X: sample(8, 20),
    "two rows": lambda X: X[:2],
    "three rows": lambda X: X[:3],
    "two columns": lambda X: X[:, :2],
    "heavy tails": heavy,
    "one huge entry": lambda X: at(X, 1e8),
    "small scale": lambda X: 1e-60 * X,
    "large scale": lambda X: 1e60 * X,
    "mixed scales": lambda X: X * np.logspace(-6, 6, X.shape[1]),
    "near singular": lambda X: X[:, :2] @ np.ones((2, 10)) + 1e-9 * X,
    "far from zero": lambda X: X + 1e6,
    "binary": lambda X: (X > 0).astype(float),
    "subnormal entry": lambda X: at(X, 5e-324),
    "constant column": lambda X: constant(X, 1),
    "zero row": lambda X: X * (np.arange(len(X)) != 2)[:, None],
    "exactly low rank": lambda X: X[:, :1] @ np.ones((1, 10)),
    "one column": lambda X: X[:, :1],
}


@pytest.mark.parametrize("case", FITTED)
def test_fitted_with_finite_results(name, case):
    X = FITTED[case](sample())
    if (name, case) == ("SparsePrecision", "constant column"):
        with pytest.raises(ValueError, match=r"1 constant column.*at 2.*drop them"):
            make(name).fit(X)
        return
    one = name != "SparsePrecision" and (min(X.shape) <= 2 or case == "exactly low rank")
    fit_and_check(make(name, **({"n_components": 1} if one else {})), X)


def test_as_many_components_as_there_can_be(name):
    """Rank min(n, p) leaves no noise; one more is impossible."""
    if name == "SparsePrecision":
        pytest.skip("has no components")
    X = sample(24, 8)
    assert fit_and_check(make(name, n_components=8), X).n_components_ in (7, 8)
    with pytest.raises(ValueError, match=r"n_components=10 .*(8|at most 7)"):
        make(name, n_components=10).fit(X)


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "not contiguous": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "byte order": lambda X: X.astype(X.dtype.newbyteorder()),
}


@pytest.mark.parametrize("case", LAYOUTS)
def test_memory_layout_does_not_matter(name, case):
    X = sample()
    assert_same_fit(fit_and_check(make(name), LAYOUTS[case](X)), make(name).fit(X))


def test_a_read_only_array_is_fitted(name):
    X = sample()
    X.setflags(write=False)
    fit_and_check(make(name), X)


@pytest.mark.parametrize("dtype", [np.int64, np.uint16, np.float16, bool])
def test_other_number_types_are_taken_as_they_are(name, dtype):
    X = np.maximum(4 * sample(), 0).astype(dtype)
    assert_same_fit(fit_and_check(make(name), X), make(name).fit(X.astype(np.float64)))


def test_new_rows_of_any_size_get_numbers_or_a_reason(name):
    model = make(name).fit(sample())
    methods = [method for method in ("transform", "score_samples") if hasattr(model, method)]
    assert methods
    sizes = {np.float64: [1e150, 1e300, 1.7e308, -1e300, 5e-324], np.float32: [3e38, -3e38, 1e-45]}
    for dtype, value, method in [(d, v, m) for d in sizes for v in sizes[d] for m in methods]:
        rows = np.full((3, 10), value, dtype)
        try:
            found = getattr(model, method)(rows)
        except ValueError as error:
            if "Check the units of X" not in str(error) or abs(value) < 1e30:
                raise
        else:
            assert np.isfinite(found).all(), (method, value)
