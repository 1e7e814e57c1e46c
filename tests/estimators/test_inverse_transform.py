"""From scores back to rows: the same rules for every estimator that has them."""

import numpy as np
import pytest

from mnpca import (
    MNPCA,
    DimensionFoldingPCA,
    GeneralizedPCA,
    LikelihoodMNPCA,
    TensorMNPCA,
    WassersteinMNPCA,
)
from mnpca.datasets import make_low_rank_matrix_normal, make_tensor_normal

ROWS = make_low_rank_matrix_normal(30, 12, 1, condition=2, random_state=0).Y
CUBE = make_tensor_normal((12, 8, 7), 1, random_state=0).Y
MATRIX_FITS = {
    "MNPCA": MNPCA(1, noise="diagonal"),
    "LikelihoodMNPCA": LikelihoodMNPCA(1, alpha_row=0.3, alpha_col=0.3),
    "WassersteinMNPCA": WassersteinMNPCA(1),
    "GeneralizedPCA": GeneralizedPCA(1),
}
FITS = MATRIX_FITS | {
    "TensorMNPCA": TensorMNPCA(1, noise="diagonal"),
    "DimensionFoldingPCA": DimensionFoldingPCA(1, 1, noise="diagonal"),
}


@pytest.fixture(scope="module")
def fitted():
    """Return fitted models by name, each with its data."""
    data = {name: CUBE if name == "DimensionFoldingPCA" else ROWS for name in FITS}
    return {name: (model.fit(data[name]), data[name]) for name, model in FITS.items()}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_rows_have_the_type_of_their_scores(fitted, name, kind):
    model, X = fitted[name]
    scores = np.round(model.transform(X))
    rows = model.inverse_transform(scores.astype(kind))
    assert rows.dtype == (kind if kind is np.float32 else np.float64)
    np.testing.assert_allclose(rows, model.inverse_transform(scores), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FITS)
def test_scores_of_another_model_are_refused(fitted, name):
    model, X = fitted[name]
    scores = np.repeat(model.transform(X), 3, axis=-1)
    with pytest.raises(ValueError, match="Pass what transform returns"):
        model.inverse_transform(scores)


@pytest.mark.parametrize("name", MATRIX_FITS)
def test_scores_in_torch(fitted, name):
    torch = pytest.importorskip("torch")
    model, X = fitted[name]
    scores = np.round(model.transform(X))
    rows = model.inverse_transform(torch.tensor(scores, dtype=torch.int64))
    assert rows.dtype == torch.float64
    np.testing.assert_allclose(rows.numpy(), model.inverse_transform(scores))
    with pytest.raises(ValueError, match=r"2 scores a row, but .* has 1 components"):
        model.inverse_transform(torch.ones((3, 2)))


@pytest.mark.parametrize("name", MATRIX_FITS)
def test_scores_in_dask(fitted, name):
    da = pytest.importorskip("dask.array")
    model, X = fitted[name]
    scores = np.round(model.transform(X))
    for kind, expected in ((np.float32, np.float32), (np.int64, np.float64)):
        rows = model.inverse_transform(da.from_array(scores.astype(kind), chunks=(10, 1)))
        assert rows.dtype == rows.compute().dtype == expected
        np.testing.assert_allclose(rows, model.inverse_transform(scores), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"2 scores a row, but .* has 1 components"):
        model.inverse_transform(da.ones((3, 2)))


def test_a_model_without_components_gives_its_mean():
    model = MNPCA(0).fit(ROWS)
    rows = model.inverse_transform(np.zeros((3, 0)))
    np.testing.assert_allclose(rows, np.tile(model.mean_, (3, 1)))
