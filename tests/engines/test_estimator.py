"""MNPCA gives the same model wherever its matrix lives, and answers there."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca import MNPCA
from mnpca.datasets import make_low_rank_matrix_normal
from mnpca.engines.arrays import to_numpy

#: Where an estimator's results follow its matrix.
ARRAYS = [
    "numpy-float64",
    "torch-float64",
    "torch-float32",
    "strict-float64",
    "cuda-float64",
    "cuda-float32",
    "cupy-float32",
]
pytestmark = pytest.mark.parametrize("place", ARRAYS, indirect=True)


def pairs(size, n_pairs):
    """Precision with as many strongly linked pairs in front."""
    precision = np.eye(size)
    first = 2 * np.arange(n_pairs)
    precision[first, first + 1] = precision[first + 1, first] = -0.7
    return sp.csr_array(precision)


@pytest.fixture(scope="module")
def data():
    return make_low_rank_matrix_normal(
        100, 80, row_precision=pairs(100, 20), col_precision=pairs(80, 10), random_state=0
    )


@pytest.fixture(scope="module")
def reference(data):
    return MNPCA(2, noise="graph", prior="gaussian").fit(data.Y)


@pytest.fixture(scope="module")
def kept():
    """Fits by the name of their place."""
    return {}


@pytest.fixture
def model(place, data, kept):
    if place.name not in kept:
        kept[place.name] = MNPCA(2, noise="graph", prior="gaussian").fit(place.put(data.Y))
    return kept[place.name]


def close(actual, expected, tol=2e-3):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(to_numpy(actual), expected, atol=tol * scale)


def test_the_same_model_everywhere(model, reference):
    close(model.components_, reference.components_)
    close(model.singular_values_, reference.singular_values_)
    close(model.denoise(), reference.denoise())
    close(model.score_covariance_, reference.score_covariance_)
    assert model.noise_variance_ == pytest.approx(reference.noise_variance_, rel=1e-3)
    for side in ("row_precision_", "col_precision_"):
        ours, theirs = getattr(model, side), getattr(reference, side)
        assert (ours != 0).toarray().tolist() == (theirs != 0).toarray().tolist()
        close(ours.toarray(), theirs.toarray())


def test_results_live_where_the_matrix_lives(place, data, model, reference):
    X = place.put(data.Y)
    signal, std = model.denoise(return_std=True)
    scores = model.transform(X)
    for result in (signal, std, scores, model.inverse_transform(scores)):
        assert type(result) is type(X)
        assert getattr(result, "device", None) == getattr(X, "device", None)
    if type(X) is not np.ndarray:
        for result in (model.components_, model.mean_, model.low_rank_.left):
            assert type(result) is type(X)
            assert result.dtype == X.dtype
    close(scores, reference.transform(data.Y))
    close(model.inverse_transform(scores), reference.inverse_transform(reference.transform(data.Y)))
    close(model.score_samples(X), reference.score_samples(data.Y))
    assert model.score(X) == pytest.approx(reference.score(data.Y), rel=1e-4)
    # A model answers NumPy rows in NumPy, wherever it was fitted.
    assert type(model.transform(data.Y)) is np.ndarray
    close(model.transform(data.Y), reference.transform(data.Y))


def test_a_fit_goes_on_from_a_checkpoint(place, data, tmp_path):
    X = place.put(data.Y)
    quick = {"noise": "graph", "prior": "gaussian"}
    whole = MNPCA(2, **quick).fit(X, checkpoint=tmp_path / "fit")
    again = MNPCA(2, **quick).fit(X, resume_from=tmp_path / "fit")
    close(again.components_, to_numpy(whole.components_), 1e-6)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda Y: Y[:1], "minimum"),
        (lambda Y: Y[0], "2D array"),
        (lambda Y: np.where(np.arange(Y.shape[1]) == 1, np.nan, Y), "NaN"),
        (lambda Y: np.where(np.arange(Y.shape[1]) == 1, np.inf, Y), "infinity"),
        (lambda Y: 0 * Y, "zero everywhere"),
        (lambda Y: 0 * Y + np.arange(Y.shape[1]), "All rows of X are the same"),
        (lambda Y: 1e30 * Y, "Rescale X"),
    ],
)
def test_bad_matrices_are_refused(place, data, spoil, message):
    if "float64" in place.name and "Rescale" in message:
        pytest.skip("float64 holds such values")
    if place.name.startswith("numpy"):
        pytest.skip("NumPy's own checks are tested with the estimators")
    with pytest.raises(ValueError, match=message):
        MNPCA(2).fit(place.put(spoil(data.Y)))
