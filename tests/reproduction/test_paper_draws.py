"""The paper's own data: MATLAB's random numbers, and what the paper printed about the data."""

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import PCA

from mnpca.metrics import psnr
from reproduction.matlab_stream import MatlabStream
from reproduction.paper_draws import paper_draw_large, paper_draw_small

# What MATLAB prints after rng('default') and rng(1), as in its manual.
UNIFORM = [0.8147, 0.9058, 0.1270, 0.9134, 0.6324, 0.0975, 0.2785, 0.5469, 0.9575, 0.9649]
NORMAL = [0.5377, 1.8339, -2.2588, 0.8622, 0.3188, -1.3077, -0.4336, 0.3426, 3.5784, 2.7694]
NORMAL_OF_1 = [-0.6490, 1.1812, -0.7585, -1.1096, -0.8456, -0.5727, -0.5587, 0.1784, -0.1969]
# randn(10) after rng('default'), its last column: a strip was left and a number refused before.
LATER = [-1.1480, 0.1049, 0.7223, 2.5855, -0.6669, 0.1873, -0.0825, -1.9330, -0.4390, -1.7947]


def test_numbers_that_matlab_prints():
    np.testing.assert_allclose(MatlabStream(0).uniform(10), UNIFORM, atol=5.1e-5)
    np.testing.assert_allclose(MatlabStream(0).normal((1, 10))[0], NORMAL, atol=5.1e-5)
    np.testing.assert_allclose(MatlabStream(1).normal((1, 9))[0], NORMAL_OF_1, atol=5.1e-5)
    np.testing.assert_allclose(MatlabStream(0).normal((10, 10))[:, 9], LATER, atol=5.1e-5)
    assert (MatlabStream(0).permutation(10) + 1).tolist() == [6, 3, 7, 8, 5, 1, 2, 4, 9, 10]


def test_draws_do_not_depend_on_how_they_are_asked_for():
    whole = MatlabStream(3).normal((1, 50_000))[0]
    stream = MatlabStream(3)
    pieces = [stream.normal((1, size))[0] for size in (1, 999, 20_000, 29_000)]
    np.testing.assert_array_equal(whole, np.concatenate(pieces))
    assert stats.kstest(whole, "norm").pvalue > 0.01
    assert np.abs(whole).max() > 3.66  # the tail was visited


@pytest.mark.parametrize(("c", "mean", "sd"), [(8, 15.71, 0.24), (224, -1.14, 1.24)])
def test_pca_on_the_papers_data_gives_the_papers_figures(c, mean, sd):
    values = []
    for run in range(1, 11):
        data = paper_draw_small(c, run)
        pca = PCA(2)
        values.append(psnr(pca.inverse_transform(pca.fit_transform(data.Y)), data.signal))
    assert (round(np.mean(values), 2), round(np.std(values, ddof=1), 2)) == (mean, sd)


def test_the_noise_has_the_precisions_that_are_said():
    data = paper_draw_small(32, 1)
    lower = np.linalg.cholesky(np.linalg.inv(data.col_precision.toarray()))
    own = np.linalg.inv(lower.T @ lower)  # that of Z Lb; Z Lb' would have the sparse one
    np.testing.assert_allclose(data.noise_col_precision.toarray(), own, atol=1e-10)
    rows = np.linalg.cholesky(data.row_precision.toarray())
    white = rows.T @ (data.Y - data.signal) @ np.linalg.cholesky(own)
    assert abs(white.var() - 1) < 0.02


def test_large_data_have_the_programs_groups():
    data = paper_draw_large(200, 1)
    assert data.Y.shape == (1000, 200)
    assert np.bincount(data.labels).tolist() == [300, 300, 400]
    sums = [data.signal[data.labels == group][0].sum() for group in range(3)]
    assert sums == [20, -21, 41]
