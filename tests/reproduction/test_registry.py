"""Methods of the registry against their definitions, computed another way."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

from mnpca.model.metric import laplacian_metric, smooth_metric
from reproduction.baselines import METHODS, PredefinedGPCA, ProgramMNPCA, make_reducer


@pytest.fixture(scope="module")
def rows():
    return scale(load_wine().data[::4])


def same_up_to_sign(left, right):
    return np.allclose(left, np.sign((left * right).sum(axis=0)) * right, atol=1e-6)


@pytest.mark.parametrize("name", [m for m in METHODS if not m.startswith("GPCA-S")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_method_reduces_and_places_new_rows(rows, name):
    scores = make_reducer(name, 2).fit(rows[::2]).transform(rows[1::2])
    assert scores.shape == (22, 2)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", ["PCA", "PPCA"])
def test_large_matrices_are_reduced_exactly(name):
    """The solver that scikit-learn chooses for this size is random, and far off without a gap."""
    X = np.random.default_rng(0).normal(size=(520, 510))
    scores = make_reducer(name, 2).fit_transform(X)
    left = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0][:, :2]
    assert same_up_to_sign(scores / np.linalg.norm(scores, axis=0), left)


def test_kernel_pca_by_its_definition(rows):
    linear = make_reducer("KPCA-lin", 3).fit_transform(rows)
    assert same_up_to_sign(linear, PCA(3).fit_transform(rows))
    gaussian = np.exp(-((rows[:, None] - rows[None]) ** 2).sum(-1) / 2)
    centering = np.eye(len(rows)) - 1 / len(rows)
    for name, kernel in (("KPCA-gau", gaussian), ("KPCA-pol", (rows @ rows.T + 1) ** 3)):
        values, vectors = np.linalg.eigh(centering @ kernel @ centering)
        expected = vectors[:, :-3:-1] * np.sqrt(values[:-3:-1])
        assert same_up_to_sign(make_reducer(name, 2).fit_transform(rows), expected)


def symmetric_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def test_gpca_with_a_laplacian_among_rows_and_smoothing_among_columns(rows):
    """The generalized decomposition U D V' with U'QU = I and V'RV = I, through square roots."""
    density = np.mean(ProgramMNPCA(2).fit(rows).row_precision_.toarray() != 0)
    row_metric, col_metric = laplacian_metric(rows, density).toarray(), smooth_metric(rows.T)
    half_row, half_col = symmetric_root(row_metric), symmetric_root(col_metric)
    _, expected, right = np.linalg.svd(half_row @ rows @ half_col)
    reducer = PredefinedGPCA(2, random_state=np.random.RandomState(0)).fit(rows)
    assert reducer.densities_[0] == pytest.approx(density)
    np.testing.assert_allclose(reducer.gpca_.singular_values_, expected[:2], rtol=1e-5)
    loadings = reducer.gpca_.components_.T
    np.testing.assert_allclose(loadings.T @ col_metric @ loadings, np.eye(2), atol=1e-8)
    assert same_up_to_sign(half_col @ loadings, right[:2].T)
