"""SparsePrecision as scikit-learn sees it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.utils.estimator_checks import parametrize_with_checks

from mnpca import SparsePrecision, sparse_precision


@parametrize_with_checks([SparsePrecision(), SparsePrecision(alpha=0.1)])
def test_contract(estimator, check):
    check(estimator)


def chain_samples(n=400, p=12, seed=1000):
    precision = 1.3 * np.eye(p) - 0.5 * (np.eye(p, k=1) + np.eye(p, k=-1))
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(np.arange(p), np.linalg.inv(precision), size=n), precision


def test_a_number_is_the_penalty_of_the_covariance():
    X, _ = chain_samples()
    model = SparsePrecision(alpha=0.1, penalize_diagonal=True).fit(X)
    direct = sparse_precision(np.cov(X.T, bias=True), 0.1, penalize_diagonal=True)
    assert_allclose(model.precision_.toarray(), direct.precision.toarray())
    assert_allclose(model.covariance_ @ model.precision_.toarray(), np.eye(12), atol=1e-10)
    assert_allclose(model.location_, X.mean(axis=0))


@pytest.mark.parametrize("criterion", ["bic", "ebic"])
def test_the_criterion_is_what_it_says_and_finds_the_chain(criterion):
    X, truth = chain_samples(n=2000)
    model = SparsePrecision(alpha=criterion, tol=1e-9).fit(X)
    S = np.cov(X.T, bias=True)
    n, p = X.shape
    values = []
    for alpha in model.alphas_:
        T = sparse_precision(S, alpha, tol=1e-9).precision.toarray()
        n_edges = np.count_nonzero(np.triu(T, 1))
        fit = n * (np.trace(S @ T) - np.linalg.slogdet(T)[1])
        gamma = {"bic": 0.0, "ebic": 0.5}[criterion]
        values.append(fit + n_edges * (np.log(n) + 4 * gamma * np.log(p)))
    assert_allclose(model.criterion_, values, rtol=1e-5)
    assert model.alpha_ == model.alphas_[np.argmin(model.criterion_)]
    assert np.all(model.precision_.toarray()[truth != 0] != 0)


def test_score_is_the_gaussian_log_likelihood():
    X, _ = chain_samples()
    model = SparsePrecision(alpha=0.2).fit(X)
    expected = multivariate_normal(model.location_, model.covariance_).logpdf(X)
    assert_allclose(model.score_samples(X), expected, rtol=1e-8)
    assert_allclose(model.score(X), expected.mean(), rtol=1e-8)


def test_without_centering_the_location_is_zero():
    X, _ = chain_samples()
    model = SparsePrecision(alpha=0.2, center=False).fit(X)
    assert not model.location_.any()
    direct = sparse_precision(X.T @ X / len(X), 0.2)
    assert_allclose(model.precision_.toarray(), direct.precision.toarray())


def test_a_constant_column_is_named():
    X, _ = chain_samples()
    X[:, 3] = 7.1
    with pytest.raises(ValueError, match=r"constant column\(s\), the first at 3"):
        SparsePrecision(alpha=0.1).fit(X)


def test_an_earlier_choice_is_forgotten():
    X, _ = chain_samples()
    model = SparsePrecision("bic").fit(X).set_params(alpha=0.1).fit(X)
    assert not hasattr(model, "criterion_")


@pytest.mark.parametrize(("alpha", "lines"), [(0.2, 1), ("bic", None)])
def test_verbose_tells_the_penalties_and_the_result(alpha, lines, capsys):
    X, _ = chain_samples()
    model = SparsePrecision(alpha=alpha, verbose=1).fit(X)
    told = capsys.readouterr().out.splitlines()
    assert len(told) == (lines or len(model.alphas_) + 1)
    edges = (model.precision_.nnz - 12) // 2
    assert told[-1].startswith(f"[SparsePrecision] penalty {model.alpha_:.4g}: {edges} edges")
