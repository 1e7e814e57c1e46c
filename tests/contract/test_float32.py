"""Estimators of a matrix in single precision keep the rules of scikit-learn's checks."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.reliability.shared import PARAMS, digest, make, sample

X = sample(40, 8).astype(np.float32)


@pytest.fixture(scope="module", params=PARAMS)
def model(request):
    return make(request.param).fit(X)


def answers(model, rows=X):
    return getattr(model, "transform" if hasattr(model, "transform") else "score_samples")(rows)


def test_answers_are_those_of_double_precision(model):
    found, expected = answers(model), answers(clone(model).fit(X.astype(np.float64)))
    assert found.dtype == (np.float32 if hasattr(model, "transform") else np.float64)
    assert np.abs(found - expected).max() < 1e-2 * np.abs(expected).max()


def test_answers_depend_on_the_row_alone(model):
    before, found = digest(model), answers(model)
    order = np.random.default_rng(0).permutation(len(X))
    tolerance = {"rtol": 1e-6, "atol": 1e-6 * np.abs(found).max()}
    np.testing.assert_allclose(answers(model, X[order]), found[order], **tolerance)
    for rows in (slice(0, 1), slice(7, 20)):
        np.testing.assert_allclose(answers(model, X[rows]), found[rows], **tolerance)
    assert digest(model) == before
