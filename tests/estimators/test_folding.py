"""DimensionFoldingPCA: loadings of both sides, GLRAM as its limit."""

import numpy as np
import pandas as pd
import pytest

from mnpca import DimensionFoldingPCA
from mnpca.datasets import chain_precision, make_tensor_normal, planted_precision
from mnpca.metrics import edge_recovery, psnr


@pytest.fixture(scope="module")
def data():
    """Independent matrices with a mean, small matrices of their own and two noise networks."""
    rng = np.random.RandomState(1000)
    precisions = [
        chain_precision(60, 0.0),
        *(planted_precision(q, random_state=rng) for q in (20, 15)),
    ]
    data = make_tensor_normal((60, 20, 15), (4, 2, 2), precisions=precisions, random_state=rng)
    data.mean = rng.standard_normal((20, 15))
    data.Y = data.Y + data.mean
    return data


@pytest.fixture(scope="module")
def model(data):
    return DimensionFoldingPCA(2, 2).fit(data.Y)


def test_signal_and_networks_are_found(data, model):
    identity = DimensionFoldingPCA(2, 2, noise="identity").fit(data.Y)
    truth = data.signal + data.mean
    assert psnr(model.denoise(), truth) > psnr(identity.denoise(), truth)
    assert edge_recovery(model.row_precision_, data.precisions[1]).f1 > 0.8
    assert edge_recovery(model.col_precision_, data.precisions[2]).f1 > 0.8
    assert model.noise_graph("rows").number_of_nodes() == 20
    assert model.noise_graph("columns").number_of_nodes() == 15


def test_small_matrices_are_generalized_least_squares(data, model):
    Z = model.transform(data.Y)
    assert np.allclose(Z, model.cores_, atol=1e-8)
    residual = data.Y - model.inverse_transform(Z)
    seen = model.row_components_ @ model.row_precision_ @ residual
    seen = seen @ (model.col_precision_ @ model.col_components_.T)
    assert np.allclose(seen, 0.0, atol=1e-8)
    assert np.allclose(model.denoise(), model.inverse_transform(Z), atol=1e-8)
    assert np.allclose(model.mean_, data.Y.mean(axis=0))


def test_lists_and_frames_are_taken(data, model):
    frames = [pd.DataFrame(matrix) for matrix in data.Y]
    again = DimensionFoldingPCA(2, 2).fit(frames)
    assert np.array_equal(again.denoise(), model.denoise())
    assert np.array_equal(again.transform(frames), again.transform(data.Y))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.eye(4), "X must be several matrices.*got 2 axes. For one matrix use MNPCA"),
        ([np.eye(4), np.eye(3)], "differ in shape"),
        (np.zeros((3, 4, 5)), "zero everywhere"),
        (np.full((3, 4, 5), np.nan), "NaN"),
        (np.ones((3, 4, 5)), "are the same"),
    ],
)
def test_wrong_data_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        DimensionFoldingPCA().fit(X)


def test_wrong_parameters_are_named(data, model):
    with pytest.raises(ValueError, match="n_row_components=21 is more than 60 matrices of 20 x 15"):
        DimensionFoldingPCA(21, 2).fit(data.Y)
    with pytest.raises(ValueError, match="'noise' parameter"):
        DimensionFoldingPCA(noise="white").fit(data.Y)
    with pytest.raises(ValueError, match="fitted to slices of shape"):
        model.transform(data.Y[:, :, :14])
    with pytest.raises(ValueError, match="expecting 20 features"):
        model.transform(data.Y[:, :19])
