"""Penalties by BIC: the grid, the criterion, the choice."""

import numpy as np
import pytest

from mnpca import LikelihoodMNPCA, sparse_precision
from mnpca.datasets import make_paper_small
from mnpca.selection.penalty import RULES, bic_path, penalty_grid


@pytest.fixture(scope="module")
def residual():
    data = make_paper_small(16, 0, n_samples=60, n_features=40, density=0.03)
    return data.Y - data.signal


def test_grid_of_the_paper():
    S = np.array([[2.0, -0.5], [-0.5, 1.2]])
    grid = penalty_grid(S, RULES["bic"])
    assert len(grid) == 10
    # S - I is [[1, -0.5], [-0.5, 0.2]]
    np.testing.assert_allclose(grid[[0, -1]], [0.15, 1.5])
    np.testing.assert_allclose(np.diff(np.log(grid)), np.log(10) / 9)


def test_grid_of_the_authors():
    rule = RULES["bic-authors"]
    S = np.array([[2.0, -0.5], [-0.5, 1.2]])
    np.testing.assert_allclose(penalty_grid(S, rule)[[0, -1]], [0.075, 1.5])
    np.testing.assert_allclose(penalty_grid(10 * S, rule)[[0, -1]], [0.15, 3.0])  # the cap
    np.testing.assert_allclose(penalty_grid(np.array([[1.3, 0], [0, 1.0]]), rule)[0], 0.05)
    assert len(penalty_grid(S, rule)) == 20


def test_grid_of_one_variable():
    np.testing.assert_allclose(penalty_grid(np.array([[4.0]]), RULES["bic"])[[0, -1]], [0.4, 4.0])
    assert np.all(penalty_grid(np.array([[0.0]]), RULES["bic"]) > 0)


def test_one_column_without_components_can_be_fitted():
    column = np.random.default_rng(1000).normal(size=(5, 1))
    model = LikelihoodMNPCA(0).fit(column)
    assert model.converged_
    assert np.isfinite(model.score(column))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("diagonal", [True, False])
def test_criterion_by_its_formula(residual, rule, diagonal):
    m = residual.shape[1]
    gram = residual @ residual.T
    path = bic_path(gram / m, m, rule, penalize_diagonal=diagonal, tol=1e-8)
    S = gram / (m if rule == "bic" else m - 1)
    times = 1 if rule == "bic" else 2
    for i in (0, 4, -1):
        A = sparse_precision(
            S, path["alpha"][i], penalize_diagonal=diagonal, tol=1e-8
        ).precision.toarray()
        # An edge at its threshold may or may not be there, within the solver's tolerance.
        edges = path["n_edges"][i]
        assert abs(edges - np.count_nonzero(np.triu(A, 1))) <= 3
        expected = -np.linalg.slogdet(A)[1] + np.trace(S @ A) + times * edges * np.log(m) / m
        assert path["bic"][i] == pytest.approx(expected, abs=1e-2)
    assert path["best"] == path["alpha"][np.argmin(path["bic"])]
    assert np.all(np.diff(path["alpha"]) > 0)
    assert path["n_edges"][0] > path["n_edges"][-1]
