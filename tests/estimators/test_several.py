"""MNPCA and LikelihoodMNPCA on several matrices."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from mnpca import MNPCA, GeneralizedPCA, LikelihoodMNPCA, WassersteinMNPCA
from mnpca.datasets import make_several_matrices
from mnpca.metrics import edge_recovery, psnr

FITS = {
    "MNPCA": MNPCA(2, noise="graph", prior="gaussian"),
    "LikelihoodMNPCA": LikelihoodMNPCA(2, alpha_row=0.2, alpha_col=0.2),
}


QUICK = MNPCA(2, noise="diagonal", prior="gaussian", max_iter=1, tol=1.0)
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::mnpca.ModelCheckWarning"
)


@pytest.fixture(scope="module")
def data():
    return make_several_matrices(20, 16, 12, 2, signal_scale=1.5, random_state=1000)


@pytest.fixture(scope="module", params=sorted(FITS))
def model(request, data):
    return clone(FITS[request.param]).fit(data.Y)


def test_shapes(data, model):
    assert model.n_matrices_ == 20
    assert model.row_precision_.shape == (16, 16)
    assert model.col_precision_.shape == (12, 12)
    assert model.components_.shape == (2, 12)
    assert model.denoise().shape == data.Y.shape
    scores = model.transform(data.Y)
    assert scores.shape == (20, 16, 2)
    assert np.array_equal(scores[3], model.transform(data.Y[3]))
    assert model.inverse_transform(scores).shape == data.Y.shape
    assert model.score_samples(data.Y).shape == (20, 16)
    assert model.score(data.Y) == pytest.approx(model.score(data.Y.reshape(-1, 12)))
    assert model.noise_graph("rows").number_of_nodes() == 16


def test_better_than_one_matrix(data, model):
    alone = clone(model).fit(data.Y[0])
    assert psnr(model.denoise()[0], data.signal[0]) > psnr(alone.denoise(), data.signal[0])
    assert edge_recovery(model.row_precision_, data.row_precision).f1 > 0.7


def test_lists_and_frames_are_the_array(data):
    model = clone(QUICK).fit(data.Y)
    listed = clone(model).fit(list(data.Y))
    assert np.array_equal(listed.denoise(), model.denoise())
    names = [f"gene {j}" for j in range(12)]
    index = [f"sample {i}" for i in range(16)]
    frames = [pd.DataFrame(matrix, index=index, columns=names) for matrix in data.Y]
    named = clone(model).fit(frames)
    assert np.array_equal(named.denoise(), model.denoise())
    assert list(named.feature_names_in_) == names
    assert list(named.sample_names_in_) == index
    assert np.array_equal(named.transform(frames), model.transform(data.Y))
    assert named.noise_graph("rows").nodes[3]["name"] == "sample 3"
    numbered = GeneralizedPCA(2).fit(pd.DataFrame(data.Y[0]))
    assert not hasattr(numbered, "sample_names_in_")


def test_the_order_of_the_matrices_does_not_matter(data, model):
    other = clone(model).fit(data.Y[::-1])
    assert np.allclose(other.denoise()[::-1], model.denoise(), atol=1e-2)
    difference = other.row_precision_.toarray() - model.row_precision_.toarray()
    assert np.abs(difference).max() < 1e-2


def test_a_second_fit_forgets_the_matrices(data):
    other = clone(QUICK).fit(data.Y).fit(data.Y[0])
    assert other.n_matrices_ is None
    assert other.denoise().shape == (16, 12)


def test_mnpca_chooses_rank_and_networks():
    data = make_several_matrices(30, 20, 15, 2, signal_scale=1.5, random_state=1000)
    model = MNPCA().fit(data.Y)
    # With 15 columns weak components and dense networks are hard to tell apart.
    assert 2 <= model.n_components_ <= 4
    assert all(side["structure"] == "graph" for side in model.noise_.values())
    signal, std = model.denoise(return_std=True)
    covered = np.abs(signal - data.signal) < 2 * std
    assert std.shape == data.Y.shape
    assert 0.9 < covered.mean() <= 1.0


def test_mnpca_finds_outliers(data):
    Y = data.Y.copy()
    Y[4, 5, 6] += 100.0
    model = MNPCA(2, noise="diagonal", prior="gaussian", robust=True).fit(Y)
    assert model.outliers_.shape == Y.shape
    assert model.outliers_[4, 5, 6]


def test_one_matrix_in_an_array_is_the_matrix():
    Y = make_several_matrices(1, 24, 16, 2, signal_scale=2.0, random_state=1001).Y
    short = clone(FITS["LikelihoodMNPCA"]).set_params(max_iter=20)
    for model in (FITS["MNPCA"], short):
        several, one = clone(model).fit(Y), clone(model).fit(Y[0])
        assert np.allclose(several.denoise()[0], one.denoise())


def test_maximum_likelihood_is_the_flip_flop_estimate():
    Y = make_several_matrices(30, 20, 15, 0, random_state=1002).Y
    model = LikelihoodMNPCA(0, alpha_row=0, alpha_col=0, center=False, tol=1e-13).fit(Y)
    A, B = np.eye(20), np.eye(15)
    for _ in range(200):
        A = np.linalg.inv(sum(y @ B @ y.T for y in Y) / (30 * 15))
        B = np.linalg.inv(sum(y.T @ A @ y for y in Y) / (30 * 20))
    scale = np.exp(np.linalg.slogdet(A)[1] / 20)
    assert np.abs(model.row_precision_.toarray() - A / scale).max() < 1e-6
    assert np.abs(model.col_precision_.toarray() - B * scale).max() < 1e-6


def test_where_maximum_likelihood_does_not_exist():
    Y = make_several_matrices(2, 20, 15, 0, random_state=1002).Y
    with pytest.raises(
        ValueError, match=r"2 matrices of 20 x 15 has no maximum: more than .* 2.33"
    ):
        LikelihoodMNPCA(0, alpha_row=0, alpha_col=0).fit(Y)
    with pytest.raises(ValueError, match="Set alpha_col above 0, or n_components=0"):
        LikelihoodMNPCA(1, alpha_row=0, alpha_col=0).fit(Y)


def test_frames_with_other_names_are_refused(data):
    frames = [pd.DataFrame(data.Y[0]), pd.DataFrame(data.Y[1]).rename(columns={0: "a"})]
    with pytest.raises(ValueError, match="differ in their columns"):
        MNPCA().fit(frames)


@pytest.mark.parametrize("kind", [GeneralizedPCA, WassersteinMNPCA])
def test_estimators_of_one_matrix_say_so(kind, data):
    for several in (data.Y, list(data.Y)):
        with pytest.raises(ValueError, match="MNPCA or LikelihoodMNPCA, which fit several"):
            kind(2).fit(several)
    with pytest.raises(ValueError, match=f"X is several matrices, and {kind.__name__} takes one"):
        kind(2).fit(data.Y[0]).transform(data.Y)
