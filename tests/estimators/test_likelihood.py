"""LikelihoodMNPCA: PCA as its special case, penalties by every name, attributes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from mnpca import GeneralizedPCA, LikelihoodMNPCA
from mnpca.datasets import make_paper_small
from mnpca.metrics import psnr
from mnpca.model.objective import Penalty, best_gauge, objective


@pytest.fixture(scope="module")
def data():
    return make_paper_small(16, 1, n_samples=60, n_features=40, density=0.03)


@pytest.fixture(scope="module")
def model(data):
    return LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3).fit(data.Y)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("low_rank_step", ["als", "closed"])
def test_without_networks_it_is_pca(data, center, low_rank_step):
    Y = data.Y if center else data.Y - data.Y.mean(axis=0)
    model = LikelihoodMNPCA(
        3, alpha_row=0, alpha_col=0, center=center, low_rank_step=low_rank_step
    ).fit(Y)
    pca = PCA(3, svd_solver="full").fit(Y)
    np.testing.assert_allclose(model.singular_values_, pca.singular_values_, rtol=1e-10)
    signs = np.sign(np.sum(model.components_ * pca.components_, axis=1))
    np.testing.assert_allclose(model.components_, pca.components_ * signs[:, None], atol=1e-10)
    np.testing.assert_allclose(model.transform(Y), pca.transform(Y) * signs, atol=1e-9)
    np.testing.assert_allclose(model.denoise(), pca.inverse_transform(pca.transform(Y)), atol=1e-9)


def test_what_a_fit_holds(data, model):
    np.testing.assert_allclose(model.mean_, data.Y.mean(axis=0))
    assert model.converged_
    assert model.n_iter_ == len(model.objective_history_) - 1
    assert np.all(np.diff(model.objective_history_) <= 1e-12)
    assert (model.alpha_row_, model.alpha_col_) == (0.3, 0.3)
    assert model.selection_.row is None


def test_the_history_ends_at_the_objective_of_the_fit(data, model):
    """A and B are reported in another scale than the penalties prefer."""
    Y = data.Y - model.mean_
    penalty = Penalty(0.3, 0.3)
    A, B = model.row_precision_, model.col_precision_
    t = best_gauge(Y.shape, model.low_rank_, A, B, penalty)
    value = objective(Y, model.low_rank_, A * t, B / t, penalty)
    assert value == pytest.approx(model.objective_history_[-1], abs=1e-4)


def test_it_ends_as_generalized_pca_of_its_precisions(data):
    model = LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3, tol=1e-9, max_iter=500).fit(data.Y)
    metrics = {"row_metric": model.row_precision_, "col_metric": model.col_precision_}
    reference = GeneralizedPCA(2, **metrics).fit(data.Y)
    np.testing.assert_allclose(model.singular_values_, reference.singular_values_, rtol=1e-4)
    np.testing.assert_allclose(model.components_, reference.components_, atol=1e-3)


@pytest.mark.parametrize("rule", ["bic", "bic-authors"])
def test_selection_keeps_the_path(data, rule):
    model = LikelihoodMNPCA(2, alpha_row=rule, alpha_col=0.3).fit(data.Y)
    path = model.selection_.row
    assert model.selection_.col is None
    assert len(path.alpha) == len(path.bic) == len(path.n_edges) == (10 if rule == "bic" else 20)
    assert model.alpha_row_ == path.best == path.alpha[np.argmin(path.bic)]
    pd.DataFrame({key: path[key] for key in ("alpha", "bic", "n_edges")})


@pytest.mark.parametrize("options", [{}, {"scale_free": True}, {"alpha_row": 0}])
@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_units_do_not_matter_to_bic(data, scale, options):
    one = LikelihoodMNPCA(2, **options).fit(data.Y)
    other = LikelihoodMNPCA(2, **options).fit(scale * data.Y)
    assert one.col_precision_.nnz > 40
    assert other.unit_ == pytest.approx(scale * one.unit_)
    np.testing.assert_allclose(other.denoise(), scale * one.denoise(), atol=1e-8 * scale)
    np.testing.assert_allclose(
        other.col_precision_.toarray() * scale**2, one.col_precision_.toarray(), atol=1e-8
    )


def test_bic_of_an_exact_signal():
    """Without any noise there is no unit to find, and no network."""
    rows = np.outer(np.arange(1.0, 13.0), np.arange(1.0, 8.0))
    model = LikelihoodMNPCA(1).fit(rows)
    np.testing.assert_allclose(model.denoise(), rows, rtol=1e-10)
    assert model.unit_ == pytest.approx(np.sqrt(np.mean(np.var(rows, axis=0))))
    assert model.row_precision_.nnz == 12


def test_a_side_switched_off(data):
    model = LikelihoodMNPCA(2, alpha_row=0.0, alpha_col=0.2).fit(data.Y)
    assert (model.row_precision_ != sp.eye_array(60)).nnz == 0
    assert model.col_precision_.nnz > 40
    other = LikelihoodMNPCA(2, alpha_row=0.2, alpha_col=0.0).fit(data.Y)
    scale = other.col_precision_.diagonal()
    assert other.col_precision_.nnz == 40
    np.testing.assert_allclose(scale, scale[0])


def test_matrix_penalties(data):
    mask = np.full((40, 40), 0.05)
    mask[:20, 20:] = mask[20:, :20] = 1e6
    B = LikelihoodMNPCA(2, alpha_row=0, alpha_col=mask).fit(data.Y).col_precision_.toarray()
    assert not B[:20, 20:].any()
    assert np.count_nonzero(B) > 40
    even = LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=np.full((40, 40), 0.3)).fit(data.Y)
    same = LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3).fit(data.Y)
    np.testing.assert_allclose(even.denoise(), same.denoise(), atol=1e-4)


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (np.ones((3, 3)), r"alpha_col must be a number or a matrix of shape \(40, 40\)"),
        (np.full((40, 40), -1.0), "alpha_col must be finite and not negative"),
        (np.triu(np.ones((40, 40))), "alpha_col must be symmetric"),
        (-1.0, "'alpha_col' parameter"),
        ("aic", "'alpha_col' parameter"),
    ],
)
def test_wrong_penalties(data, alpha, message):
    with pytest.raises(ValueError, match=message):
        LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=alpha).fit(data.Y)


def test_correlated_noise_is_where_it_gains():
    data = make_paper_small(96, 7)
    rule = "bic-authors"
    model = LikelihoodMNPCA(2, alpha_row=rule, alpha_col=rule, center=False).fit(data.Y)
    pca = GeneralizedPCA(2, center=False).fit(data.Y)
    assert psnr(model.denoise(), data.signal) > psnr(pca.denoise(), data.signal) + 3
    new = make_paper_small(
        96, 8, row_precision=data.row_precision, col_precision=data.col_precision
    ).Y
    assert model.score(new) > pca.score(new)


def test_convergence_warning_says_what_to_change(data):
    with pytest.warns(ConvergenceWarning, match="Increase max_iter or tol, or the penalties"):
        model = LikelihoodMNPCA(2, alpha_row=0.1, alpha_col=0.1, max_iter=1).fit(data.Y)
    assert not model.converged_
    assert model.n_iter_ == 1
