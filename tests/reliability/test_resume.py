"""Every estimator with a loop: stopped anywhere, it resumes to the result it would have had."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone
from tests.reliability.shared import digest, make

import mnpca.estimators._files as progress_module
from mnpca import DimensionFoldingPCA, TensorMNPCA
from mnpca.datasets import make_low_rank_matrix_normal, make_several_matrices, make_tensor_normal

Y = make_low_rank_matrix_normal(24, 16, 2, density=0.05, condition=8, random_state=1000).Y
HOLES = np.where(np.random.default_rng(0).random((18, 12)) < 0.2, np.nan, Y[:18, :12])
SEVERAL = make_several_matrices(5, 10, 9, 2, signal_scale=1.5, random_state=1000).Y
CUBE = make_tensor_normal((12, 9, 8), 2, random_state=1001).Y
COVARIATES = {"row_covariates": np.linspace(-1, 1, 24)[:, None] ** 2}

QUICK = make("LikelihoodMNPCA", alpha_row=0.3, alpha_col=0.3, tol=1e-3)
#: Estimator, data and further arguments of the fit. Choosing a rank nests the fits of many.
FITS = {
    "likelihood": (make("LikelihoodMNPCA"), Y, {}),
    "likelihood, closed": (make("LikelihoodMNPCA", low_rank_step="closed"), Y, {}),
    "Wasserstein": (make("WassersteinMNPCA"), Y, {}),
    "Wasserstein, gradient": (make("WassersteinMNPCA", method="gradient", max_iter=12), Y, {}),
    "MNPCA, noise and prior": (make("MNPCA", noise="auto", prior="auto"), Y, {}),
    "MNPCA, rank": (make("MNPCA", n_components="auto"), Y, {}),
    "MNPCA, robust": (make("MNPCA", noise="diagonal", robust=True), Y, {}),
    "covariates": (make("MNPCA"), Y, COVARIATES),
    "missing": (make("MNPCA"), HOLES, {}),
    "missing, all chosen": (make("MNPCA", n_components="auto", noise="auto"), HOLES, {}),
    "missing, likelihood": (QUICK, HOLES, {}),
    "missing, Wasserstein": (make("WassersteinMNPCA", tol=1e-3), HOLES, {}),
    "several": (make("MNPCA"), SEVERAL, {}),
    "several, likelihood": (QUICK, SEVERAL, {}),
    "tensor": (TensorMNPCA(2), CUBE, {}),
    "folding": (DimensionFoldingPCA(2, 2), CUBE, {}),
}
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::mnpca.ModelCheckWarning"
)


@pytest.mark.parametrize("name", FITS)
def test_resumed_from_any_checkpoint_to_the_bit(name, tmp_path, monkeypatch):
    monkeypatch.setattr(progress_module, "WRITE_SHARE", 0.0)
    monkeypatch.setattr(progress_module, "LOSS_SHARE", 0.0)
    estimator, data, arguments = FITS[name]
    path, kept = tmp_path / "fit.ckpt", []

    def keep(progress):
        kept.append(tmp_path / f"{len(kept)}.ckpt")
        os.link(path, kept[-1])

    reference = clone(estimator).fit(data, **arguments)
    watched = clone(estimator).fit(data, checkpoint=path, callback=keep, **arguments)
    assert digest(watched) == digest(reference)
    assert len(kept) >= 2
    for number in sorted({*np.linspace(0, len(kept) - 1, 3).astype(int)}):
        heard, resumed = [], clone(estimator)
        resumed.fit(data, resume_from=kept[number], callback=heard.append, **arguments)
        assert digest(resumed) == digest(reference), f"resumed from report {number + 1}"
        if name != "missing, all chosen":  # what is quick, the rounds of rivals, is done again
            assert len(heard) <= len(kept) - number, "resuming did work that was already done"


@pytest.mark.parametrize(
    ("name", "other", "message"),
    [
        ("several", {"X": SEVERAL.reshape(-1, 9)}, "other data"),
        ("covariates", {"row_covariates": 2 * COVARIATES["row_covariates"]}, "other data"),
        ("tensor", {"n_components": (2, 2, 1)}, "other parameters: n_components"),
    ],
)
def test_checkpoints_of_other_fits_are_refused(name, other, message, tmp_path):
    estimator, data, arguments = FITS[name]
    arguments = {"X": data} | arguments
    clone(estimator).fit(**arguments, checkpoint=tmp_path / "fit.ckpt")
    changed = {key: value for key, value in other.items() if key not in arguments}
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(**changed).fit(
            **arguments | {key: other[key] for key in other.keys() - changed.keys()},
            resume_from=tmp_path / "fit.ckpt",
        )


SCRIPT = """
import sys
from mnpca import MNPCA
from mnpca.datasets import make_paper_small
Y = make_paper_small(c=32, seed=1000, n_samples=120, n_features=90).Y
path = sys.argv[1]
MNPCA(n_components=2).fit(Y, checkpoint=path, callback=lambda p: print(p.iteration, flush=True))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for children on Windows")
def test_ctrl_c_in_a_terminal_leaves_a_checkpoint_and_the_way_on(tmp_path):
    path = tmp_path / "fit.ckpt"
    command = [sys.executable, "-c", SCRIPT, str(path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdout.readline()
    while not path.exists() and child.poll() is None:  # a signal before that has nothing to leave
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    if child.returncode == 0:
        pytest.skip("the fit was over before the signal came")
    assert "KeyboardInterrupt" in errors
    assert f"resume_from={str(path)!r}" in errors
    assert path.exists()
    assert time.time() - path.stat().st_mtime < 60
