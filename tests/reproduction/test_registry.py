"""Methods of the registry against their definitions, computed another way."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA

from mnpca.model.metric import MetricError
from reproduction.baselines import PredefinedGPCA, ProgramMNPCA, make_reducer


@pytest.fixture(scope="module")
def rows():
    X = load_wine().data[::4]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def same_up_to_sign(left, right):
    sign = np.sign((left * right).sum(axis=0))
    return np.allclose(left, sign * right, atol=1e-6)


def test_linear_kernel_pca_is_pca(rows):
    assert same_up_to_sign(
        make_reducer("KPCA-lin", 3).fit_transform(rows), PCA(3).fit_transform(rows)
    )


@pytest.mark.parametrize("name", ["PCA", "PPCA"])
def test_large_matrices_are_reduced_exactly_and_reproducibly(name):
    """The solver that scikit-learn chooses for this size is random, and far off without a gap."""
    X = np.random.default_rng(0).normal(size=(520, 510))
    one, two = (make_reducer(name, 2).fit_transform(X) for _ in range(2))
    assert np.array_equal(one, two)
    left = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0][:, :2]
    assert same_up_to_sign(one / np.linalg.norm(one, axis=0), left)


def test_gaussian_kernel_pca_by_its_definition(rows):
    kernel = np.exp(-((rows[:, None] - rows[None]) ** 2).sum(-1) / 2)
    centering = np.eye(len(rows)) - 1 / len(rows)
    values, vectors = np.linalg.eigh(centering @ kernel @ centering)
    expected = vectors[:, :-3:-1] * np.sqrt(values[:-3:-1])
    assert same_up_to_sign(make_reducer("KPCA-gau", 2).fit_transform(rows), expected)


def test_independent_components_are_a_rotation_of_whitened_pca(rows):
    scores = make_reducer("ICA", 2).fit_transform(rows)
    whitened = PCA(2, whiten=True).fit_transform(rows)
    rotation = np.linalg.lstsq(whitened, scores, rcond=None)[0]
    np.testing.assert_allclose(whitened @ rotation, scores, atol=1e-8)
    np.testing.assert_allclose(scores.T @ scores / len(rows), np.eye(2), atol=0.05)


def chebyshev(items):
    return np.abs(items[:, None] - items[None]).max(axis=-1)


def laplacian(items, density):
    distance = chebyshev(items)
    n = len(items)
    window = np.quantile(distance[np.triu_indices(n, 1)], density)
    weight = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j and distance[i, j] < window:
                weight[i, j] = 1 / distance[i, j]
    graph = np.diag(weight.sum(axis=1)) - weight
    return graph / np.linalg.eigvalsh(graph)[-1]


def symmetric_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def test_gpca_with_a_laplacian_among_rows_and_smoothing_among_columns(rows):
    """The generalized decomposition U D V' with U'QU = I and V'RV = I, through square roots."""
    density = np.mean(ProgramMNPCA(2).fit(rows).row_precision_.toarray() != 0)
    row_metric, col_metric = laplacian(rows, density), np.exp(-(chebyshev(rows.T) ** 2) / 2)
    half_row, half_col = symmetric_root(row_metric), symmetric_root(col_metric)
    _, expected, right = np.linalg.svd(half_row @ rows @ half_col)
    reducer = make_reducer("GPCA-LS", 2).fit(rows)
    assert reducer.densities_[0] == pytest.approx(density)
    model = reducer.gpca_
    np.testing.assert_allclose(model.singular_values_, expected[:2], rtol=1e-5)
    loadings = model.components_.T
    np.testing.assert_allclose(loadings.T @ col_metric @ loadings, np.eye(2), atol=1e-8)
    assert same_up_to_sign(half_col @ loadings, right[:2].T)


def test_a_metric_that_is_none_gives_no_result():
    rng = np.random.default_rng(0)
    with pytest.raises(MetricError, match="not positive semi-definite"):
        make_reducer("GPCA-SS", 2).fit(rng.standard_normal((150, 3)))


def test_generators_of_random_numbers_are_taken(rows):
    by_number = PredefinedGPCA(2, metrics="LS", random_state=3).fit_transform(rows)
    generator = np.random.RandomState(3)
    same = PredefinedGPCA(2, metrics="LS", random_state=generator).fit_transform(rows)
    np.testing.assert_array_equal(by_number, same)
