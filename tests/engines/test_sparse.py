"""Sparse matrices in the estimators: the answers of dense ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca import MNPCA, LikelihoodMNPCA
from mnpca.datasets import make_paper_small
from mnpca.engines import engine_for

pytestmark = pytest.mark.filterwarnings(
    "ignore::mnpca.model.whiteness.ModelCheckWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


@pytest.fixture(scope="module")
def matrix():
    """Make a matrix of which a fifth is not zero."""
    Y = make_paper_small(c=8, seed=1, n_samples=120, n_features=30).Y
    return np.maximum(Y - np.quantile(Y, 0.8), 0.0)


def quick():
    return MNPCA(2, noise="diagonal", prior="gaussian", max_iter=1, tol=1.0)


def close(actual, expected, tol=1e-6):
    assert np.linalg.norm(actual - expected) <= tol * np.linalg.norm(expected)


def test_mnpca_gives_the_numbers_of_a_dense_fit(matrix):
    dense, sparse = (MNPCA(prior="gaussian").fit(X) for X in (matrix, sp.csr_array(matrix)))
    assert sparse.n_components_ == dense.n_components_
    close(sparse.denoise(), dense.denoise())
    for side in ("row_precision_", "col_precision_"):
        assert getattr(sparse, side).nnz == getattr(dense, side).nnz
        close(getattr(sparse, side).toarray(), getattr(dense, side).toarray(), 1e-5)
    rows = sp.csc_matrix(matrix[:50])
    close(sparse.transform(rows), dense.transform(matrix[:50]), 1e-5)
    assert sparse.score(rows) == pytest.approx(dense.score(matrix[:50]), rel=1e-5)
    scores = sparse.transform(rows)
    close(sparse.inverse_transform(scores), dense.inverse_transform(scores), 1e-5)


def test_entries_that_are_stored_twice_are_added_up(matrix):
    stored = sp.csr_array(matrix)
    twice = sp.csr_array(
        (np.repeat(stored.data / 2, 2), np.repeat(stored.indices, 2), stored.indptr * 2),
        shape=stored.shape,
    )
    before = twice.nnz
    columns = engine_for(twice).transposed_times(np.ones((len(matrix), 1)))[:, 0]
    np.testing.assert_allclose(columns, matrix.sum(axis=0))
    assert twice.nnz == before, "the caller's matrix is left alone"


@pytest.mark.parametrize("kind", [MNPCA, LikelihoodMNPCA])
def test_what_sparse_data_cannot_have(matrix, kind):
    stored = sp.csr_array(matrix)
    with pytest.raises(ValueError, match=r"row_covariates cannot be combined with sparse data"):
        kind(2).fit(stored, row_covariates=np.arange(120.0))
    stored.data[3] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN.*toarray"):
        kind(2).fit(stored)


def test_tests_of_edges_and_outliers_need_a_dense_matrix(matrix):
    model = quick().fit(sp.csr_array(matrix))
    with pytest.raises(ValueError, match="NumPy array"):
        model.edges()
    with pytest.raises(TypeError, match="toarray"):
        MNPCA(2, robust=True).fit(sp.csr_array(matrix))


@pytest.mark.parametrize(
    "options",
    [{}, {"center": False, "ridge": 0.1}, {"alpha_row": 0.0, "low_rank_step": "closed"}],
)
def test_likelihood_gives_the_numbers_of_a_dense_fit(matrix, options):
    matrix = matrix[:50, :16]
    dense = LikelihoodMNPCA(2, **options).fit(matrix)
    sparse = LikelihoodMNPCA(2, **options).fit(sp.csr_array(matrix))
    close(sparse.denoise(), dense.denoise())
    close(sparse.col_precision_.toarray(), dense.col_precision_.toarray())
    np.testing.assert_allclose(sparse.objective_history_[-1], dense.objective_history_[-1])
    close(sparse.transform(sp.csr_array(matrix)), dense.transform(matrix))
