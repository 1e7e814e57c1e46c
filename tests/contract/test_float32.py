"""scikit-learn's checks of numbers once more, with every matrix in float32."""

import functools
import re

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import mnpca
from mnpca.estimators._files import MATRIX_MODELS


def cast(X):
    if isinstance(X, np.ndarray) and X.dtype == np.float64:
        return X.astype(np.float32)
    return X


def in_float32(kind):
    """Return a subclass that casts what its methods are given."""

    def casting(method):
        @functools.wraps(method)
        def cast_and_call(self, X, *args, **kwargs):
            return method(self, cast(X), *args, **kwargs)

        return cast_and_call

    def tags(self):
        tags = kind.__sklearn_tags__(self)
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    methods = ("fit", "transform", "inverse_transform", "score", "score_samples")
    body = {name: casting(getattr(kind, name)) for name in methods if hasattr(kind, name)}
    body |= {"__sklearn_tags__": tags, "__module__": __name__}
    return type(f"Float32{kind.__name__}", (kind,), body)


# In the module's namespace, where pickle looks for them.
CLASSES = {name: in_float32(getattr(mnpca, name)) for name in MATRIX_MODELS}
globals().update({f"Float32{name}": kind for name, kind in CLASSES.items()})


#: The checks that compare what an estimator computes; the others are about its interface.
NUMBERS = re.compile(
    "dict_unchanged|nan_inf|pickle|f_contiguous|fit2d_1|idempotent|(order|subset)_invariance"
    "|pipeline|transformer_(data|general|preserve)"
)


def checks():
    for name, kind in CLASSES.items():
        params = {} if name == "SparsePrecision" else {"n_components": 1}
        if name == "LikelihoodMNPCA":  # penalties by BIC take many times as long
            params |= {"alpha_row": 0.3, "alpha_col": 0.3}
        if name == "MNPCA":
            params |= {"noise": "graph", "prior": "gaussian"}
        for estimator, check in estimator_checks_generator(kind(**params)):
            subject = check.func.__name__
            if NUMBERS.search(subject):
                yield pytest.param(estimator, check, id=f"{name}-{subject}")


# The checks' data are no low-rank signal in noise, and an estimator may say so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::mnpca.model.whiteness.ModelCheckWarning")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", MATRIX_MODELS)
def test_results_of_float32_are_finite_and_close(name):
    X = np.random.default_rng(1000).normal(size=(40, 8))
    X += 3 * np.outer(X[:, 0], np.ones(8))
    params = {} if name == "SparsePrecision" else {"n_components": 1}
    model, reference = (
        getattr(mnpca, name)(**params).fit(X.astype(kind)) for kind in (np.float32, np.float64)
    )
    method = "transform" if hasattr(model, "transform") else "score_samples"
    found, expected = getattr(model, method)(X), getattr(reference, method)(X)
    assert np.abs(found - expected).max() < 1e-2 * np.abs(expected).max()
