"""TensorMNPCA: the model it reports, and the matrix as a special case."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mnpca import TensorMNPCA
from mnpca.datasets import make_paper_small, make_tensor_normal
from mnpca.metrics import psnr
from mnpca.model.rows import gls_scores
from mnpca.solvers.mnpca import fit_mnpca


@pytest.fixture(scope="module")
def data():
    return make_tensor_normal((25, 20, 12), (2, 3, 2), random_state=1001)


@pytest.fixture(scope="module")
def model(data):
    return TensorMNPCA((2, 3, 2)).fit(data.Y)


def test_reports_the_whole_model(data, model):
    assert model.n_components_ == (2, 3, 2) == model.core_.shape
    assert [factor.shape for factor in model.factors_] == [(25, 2), (20, 3), (12, 2)]
    assert [P.shape for P in model.precisions_] == [(25, 25), (20, 20), (12, 12)]
    assert model.components_.shape == (2, 20, 12)
    assert psnr(model.denoise(), data.signal) > psnr(data.Y, data.signal) + 10
    assert model.noise_graph(0).number_of_nodes() == 25
    assert len(model.objective_history_) == model.n_iter_


def test_scores_of_the_training_slices_give_the_signal_back(data, model):
    scores = model.transform(data.Y)
    assert scores.shape == (25, 2)
    assert np.allclose(model.inverse_transform(scores), model.denoise(), atol=1e-4)
    assert list(model.get_feature_names_out()) == ["tensormnpca0", "tensormnpca1"]


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("noise", ["graph", "diagonal"])
def test_a_matrix_is_fitted_as_by_mnpca(center, noise):
    Y = make_paper_small(c=32, seed=1000, n_samples=90, n_features=64).Y
    tensor = TensorMNPCA(2, center=center, noise=noise).fit(Y)
    matrix = fit_mnpca(Y, 2, center=center, noise=noise)
    assert np.abs(tensor.denoise() - matrix.denoised()).max() < 1e-8
    assert np.abs(tensor.precisions_[0] - matrix.row_noise.precision).max() < 1e-8
    assert np.abs(tensor.precisions_[1] - matrix.col_noise.precision).max() < 1e-8
    assert np.abs(tensor.components_ - matrix.loadings.T).max() < 1e-8
    assert np.abs(tensor.mean_ - matrix.mean).max() < 1e-8
    assert np.array_equal(tensor.singular_values_, matrix.singular_values)
    scores = gls_scores(Y - matrix.mean, matrix.col_noise.precision, matrix.loadings)
    assert np.abs(tensor.transform(Y) - scores).max() < 1e-8


def test_a_noise_structure_for_each_axis(data):
    model = TensorMNPCA(2, noise=["identity", "diagonal", "graph"]).fit(data.Y)
    equal, unequal, network = model.precisions_
    assert np.allclose(equal.toarray(), np.eye(25))
    assert unequal.nnz == 20
    assert np.ptp(unequal.diagonal()) > 0
    assert network.nnz > 12


def test_rank_zero_is_noise_alone(data):
    model = TensorMNPCA(0).fit(data.Y - data.signal)
    assert np.array_equal(model.denoise(), np.zeros((25, 20, 12)))
    assert model.transform(data.Y).shape == (25, 0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": (2, 2)}, "one number for each of 3 axes"),
        ({"n_components": (3, 1, 1)}, "at most the product of the others, 1"),
        ({"n_components": 13}, "between 0 and 12"),
        ({"n_components": (2, 2, 1.5)}, "whole number"),
        ({"n_components": -1}, "'n_components' parameter"),
        ({"noise": ["graph", "graph"]}, "a list of 3"),
        ({"noise": ["graph", "graph", "white"]}, "must be one of"),
        ({"noise": "white"}, "'noise' parameter"),
        ({"tol": 0.0}, "'tol' parameter"),
    ],
)
def test_wrong_parameters_are_named(data, params, message):
    with pytest.raises(ValueError, match=message):
        TensorMNPCA(**params).fit(data.Y)


def test_wrong_data_are_named(data, model):
    with pytest.raises(ValueError, match=r"slices of shape \(20, 11\)"):
        model.transform(data.Y[:, :, :11])
    with pytest.raises(ValueError, match="axis must be 0 to 2"):
        model.noise_graph(3)
    with pytest.raises(NotFittedError):
        TensorMNPCA().transform(data.Y)


def test_float32_and_lists_are_taken(data, model):
    single = TensorMNPCA((2, 3, 2)).fit(data.Y.astype(np.float32))
    assert np.allclose(single.denoise(), model.denoise(), atol=1e-3)
    assert single.transform(data.Y.astype(np.float32)).dtype == np.float32
    listed = TensorMNPCA((2, 3, 2)).fit(data.Y.tolist())
    assert np.array_equal(listed.denoise(), model.denoise())


def test_a_fit_that_does_not_settle_says_so(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning, match="did not settle in 1 iterations"):
            TensorMNPCA(2, noise="diagonal", max_iter=1).fit(data.Y)


def test_networks_are_drawn_and_exported_by_axis(model, tmp_path):
    from mnpca.interop.networkx import to_networkx, write_graphml
    from mnpca.plots import NoiseGraphDisplay

    graph = to_networkx(model, 1)
    assert graph.number_of_nodes() == 20
    assert graph.number_of_edges() == model.noise_graph(1).number_of_edges()
    write_graphml(model, 2, tmp_path / "hours.graphml")
    display = NoiseGraphDisplay.from_estimator(model, 0).plot(kind="matrix")
    assert "among axis 0" in display.ax_.get_title()
    display.figure_.clear()
    with pytest.raises(ValueError, match=r"axis.* 0 to 2, got 'rows'"):
        to_networkx(model, "rows")


@pytest.mark.parametrize("name", ["row_covariates", "col_covariates"])
def test_covariates_are_refused_with_a_remedy(data, name):
    with pytest.raises(ValueError, match=rf"takes no {name}.*Subtract.*MNPCA.*fit\(X, {name}="):
        TensorMNPCA(2).fit(data.Y, **{name: np.ones((25, 1))})
