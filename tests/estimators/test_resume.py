"""Fits of what is no single complete matrix: stopped anywhere, they resume to the same result.

Fits of one complete matrix are in tests/reliability.
"""

import os

import numpy as np
import pytest
from sklearn.base import clone
from tests.reliability.shared import fitted

import mnpca.estimators._files as progress_module
from mnpca import MNPCA, DimensionFoldingPCA, LikelihoodMNPCA, TensorMNPCA, WassersteinMNPCA
from mnpca.datasets import make_low_rank_matrix_normal, make_several_matrices, make_tensor_normal
from mnpca.persistence import fingerprint

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::mnpca.ModelCheckWarning"
)

MATRIX = make_low_rank_matrix_normal(30, 20, 2, density=0.05, condition=8, random_state=3).Y
HOLES = np.where(np.random.default_rng(0).random(MATRIX.shape) < 0.2, np.nan, MATRIX)
SEVERAL = make_several_matrices(8, 12, 9, 2, signal_scale=1.5, random_state=1000).Y
CUBE = make_tensor_normal((15, 12, 8), 2, random_state=1001).Y
COVARIATES = {"row_covariates": np.linspace(-1, 1, 30)[:, None] ** 2}

NETWORKS = MNPCA(2, noise="graph", prior="gaussian")
LIKELIHOOD = LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3)
FITS = {
    "missing, MNPCA": (NETWORKS, HOLES, {}),
    "missing, rank and noise chosen": (MNPCA(prior="gaussian"), HOLES, {}),
    "missing, likelihood": (LIKELIHOOD, HOLES, {}),
    "missing, Wasserstein": (WassersteinMNPCA(2, tol=1e-3), HOLES, {}),
    "covariates": (NETWORKS, MATRIX, COVARIATES),
    "several, MNPCA": (NETWORKS, SEVERAL, {}),
    "several, likelihood": (LIKELIHOOD, SEVERAL, {}),
    "tensor": (TensorMNPCA(2), CUBE, {}),
    "folding": (DimensionFoldingPCA(2, 2), CUBE, {}),
}


def digest(model):
    return {key: fingerprint(value) for key, value in fitted(model).items()}


@pytest.mark.parametrize("name", FITS)
def test_resumed_from_any_checkpoint_to_the_bit(name, tmp_path, monkeypatch):
    monkeypatch.setattr(progress_module, "WRITE_SHARE", 0.0)
    monkeypatch.setattr(progress_module, "LOSS_SHARE", 0.0)
    estimator, data, arguments = FITS[name]
    path, kept = tmp_path / "fit.ckpt", []

    def keep(progress):
        kept.append(tmp_path / f"{len(kept)}.ckpt")
        os.link(path, kept[-1])

    whole = clone(estimator).fit(data, checkpoint=path, callback=keep, **arguments)
    assert len(kept) >= 2
    for number in sorted({len(kept) // 2, len(kept) - 1}):
        heard, resumed = [], clone(estimator)
        resumed.fit(data, resume_from=kept[number], callback=heard.append, **arguments)
        assert digest(resumed) == digest(whole), f"resumed from report {number + 1}"
        if "chosen" not in name:  # what is quick, the rounds of rivals, is done again
            assert len(heard) <= len(kept) - number, "resuming did work that was already done"


@pytest.mark.parametrize(
    ("name", "other", "message"),
    [
        ("several, MNPCA", {"X": SEVERAL.reshape(-1, 9)}, "other data"),
        ("covariates", {"row_covariates": 2 * COVARIATES["row_covariates"]}, "other data"),
        ("tensor", {"n_components": (2, 2, 1)}, "other parameters: n_components"),
    ],
)
def test_checkpoints_of_other_fits_are_refused(name, other, message, tmp_path):
    estimator, data, arguments = FITS[name]
    estimator, arguments = clone(estimator), {"X": data} | arguments
    estimator.fit(**arguments, checkpoint=tmp_path / "fit.ckpt")
    for key, value in other.items():
        if key in arguments:
            arguments[key] = value
        else:
            estimator.set_params(**{key: value})
    with pytest.raises(ValueError, match=message):
        estimator.fit(**arguments, resume_from=tmp_path / "fit.ckpt")
