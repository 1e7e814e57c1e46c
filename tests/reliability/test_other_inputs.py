"""Bad input to what takes more than one complete matrix: holes, covariates, several, tensors."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from tests.reliability.shared import sample

import mnpca
from mnpca.report import collect

RNG = np.random.default_rng(0)
X = sample()
HOLES = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
MASKED = np.ma.array(np.where(np.isnan(HOLES), 1e3, X), mask=np.isnan(HOLES))
CUBE = np.stack([X, X[::-1] + 1, 2 * X])


def several():
    return mnpca.MNPCA(2, noise="diagonal", prior="gaussian")


REFUSED = {
    "infinity beside holes": (lambda: several().fit(_with(HOLES, np.inf, row=0)), "infinity"),
    "a mask without holes allowed": (lambda: mnpca.SparsePrecision().fit(MASKED), "contains NaN"),
    "covariates that explain everything": (
        lambda: several().fit(X, row_covariates=RNG.normal(size=(24, 24))),
        "row_covariates explain every possible X",
    ),
    "column covariates that explain everything": (
        lambda: several().fit(X, col_covariates=np.eye(10)),
        "col_covariates explain every possible X",
    ),
    "a frame among arrays": (lambda: several().fit([X, pd.DataFrame(X)]), "all be data frames"),
    "several with a mask": (
        lambda: several().fit(np.ma.array([MASKED, MASKED])),
        "several matrices at once must be complete",
    ),
    "a table of several": (
        lambda: several().fit(CUBE).set_output(transform="pandas").transform(CUBE),
        "no pandas table has. Transform the matrices one by one",
    ),
    "covariates of several": (
        lambda: several().fit(CUBE, row_covariates=np.ones(24)),
        "row_covariates cannot be combined with several matrices",
    ),
    "a report of several": (lambda: collect(several().fit(CUBE), CUBE), "must be one matrix"),
    "a tensor with holes": (lambda: mnpca.TensorMNPCA(1).fit([X, HOLES]), "contains NaN"),
    "a tensor with a mask": (
        lambda: mnpca.TensorMNPCA(1).fit(np.ma.array([MASKED, MASKED])),
        "contains NaN",
    ),
    "a tensor without entries": (
        lambda: mnpca.TensorMNPCA(1).fit(np.zeros((3, 0, 2))),
        "holds no entries",
    ),
}


def _with(matrix, value, row=slice(None), col=slice(None)):
    matrix = matrix.copy()
    matrix[row, col] = value
    return matrix


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_reason(case):
    attempt, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        attempt()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_mask_is_a_hole():
    """What lies below a mask was not observed, in training and in new rows."""
    masked, plain = several().fit(MASKED), several().fit(HOLES)
    assert np.array_equal(masked.components_, plain.components_)
    assert np.array_equal(masked.completed_, plain.completed_)
    for rows in (MASKED, HOLES):
        assert np.array_equal(masked.transform(rows), plain.transform(HOLES))
        assert np.array_equal(masked.score_samples(rows), plain.score_samples(HOLES))
        assert np.array_equal(masked.impute(rows), plain.impute(HOLES))


def test_lists_of_lists_are_matrices():
    nested = several().fit([X.tolist(), CUBE[1].tolist(), CUBE[2].tolist()])
    assert np.array_equal(nested.components_, several().fit(CUBE).components_)


def test_tensors_that_are_no_real_dense_matrix():
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(X)
    with pytest.raises(ValueError, match="it is complex"):
        several().fit(tensor + 1j)
    with pytest.raises(TypeError, match="must be dense"):
        several().fit(tensor.to_sparse())
    for dtype in (torch.float16, torch.bfloat16):
        low, plain = tensor.to(dtype), tensor.to(dtype).to(torch.float32)
        assert torch.equal(several().fit(low).components_, several().fit(plain).components_)


@pytest.mark.parametrize("dtype", ["complex128", "object", "U8"])
def test_dask_arrays_of_other_things(dtype):
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match=f"real numbers, not .*{dtype}"):
        several().fit(da.from_array(X).astype(dtype))


DASK = """
import sys, numpy as np, dask.array as da, mnpca
assert "distributed" not in sys.modules
Y = np.random.default_rng(0).normal(size=(30, 8))
signals = [mnpca.MNPCA(1).fit(X).denoise() for X in (da.from_array(Y, chunks=(10, 8)), Y)]
np.testing.assert_allclose(*(np.asarray(signal) for signal in signals), atol=1e-5)
"""


def test_dask_needs_nothing_imported_first():
    pytest.importorskip("dask.array")
    subprocess.run([sys.executable, "-c", DASK], check=True)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_tensors_of_any_unit(scale):
    torch = pytest.importorskip("torch")
    near, far = several().fit(torch.from_numpy(X)), several().fit(torch.from_numpy(scale * X))
    assert far.noise_variance_ == pytest.approx(near.noise_variance_, rel=1e-5)
    expected = near.score(torch.from_numpy(X)) - X.shape[1] * np.log(scale)
    assert far.score(torch.from_numpy(scale * X)) == pytest.approx(expected, rel=1e-6)
