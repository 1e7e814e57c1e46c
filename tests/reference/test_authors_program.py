"""LikelihoodMNPCA beside the program of the paper's authors, on the same data.

The outputs of that program are not part of this repository. ``MNPCA_REFERENCE`` names their
folder; the default is a folder ``shared/reference`` beside the checkout.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca import LikelihoodMNPCA
from mnpca.metrics import psnr
from mnpca.model.low_rank import LowRank
from mnpca.model.objective import Penalty, best_gauge, objective

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("MNPCA_REFERENCE", CHECKOUT.parent / "shared" / "reference"))
FILES = sorted(FOLDER.glob("c*_s*.npz"))

pytestmark = pytest.mark.skipif(
    not FILES, reason="no outputs of the authors' program; set MNPCA_REFERENCE to their folder"
)


@pytest.fixture(scope="module", params=FILES, ids=[path.stem for path in FILES])
def stored(request):
    with np.load(request.param) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def ours(stored):
    """Fit with the authors' penalties: diagonal penalized, ridge 0.01, not centered."""
    return LikelihoodMNPCA(
        int(stored["k"]),
        alpha_row=float(stored["lam1"]),
        alpha_col=float(stored["lam2"]),
        ridge=0.01,
        center=False,
    ).fit(stored["Y"])


def sparse(stored, name):
    row, col, values, shape = (stored[f"{name}_{part}"] for part in ("row", "col", "val", "shape"))
    return sp.csr_array((values, (row, col)), shape=tuple(shape))


def test_objective_is_no_higher(stored, ours):
    penalty = Penalty(float(stored["lam1"]), float(stored["lam2"]), True, ridge=0.01)
    signal = LowRank(stored["mrl_X"], stored["mrl_W"])
    A, B = sparse(stored, "mrl_iA"), sparse(stored, "mrl_iB")
    t = best_gauge(stored["Y"].shape, signal, A, B, penalty)
    for scale in (1.0, t):
        theirs = objective(stored["Y"], signal, A * scale, B / scale, penalty)
        assert ours.objective_history_[-1] <= theirs


def test_signal_is_recovered_as_well(stored, ours):
    theirs = psnr(stored["mrl_X"] @ stored["mrl_W"].T, stored["signal"])
    assert psnr(ours.denoise(), stored["signal"]) >= theirs - 0.3


def test_authors_rule_chooses_what_their_program_chose(stored):
    """On the files that hold the choice for their own data."""
    if not np.isfinite(stored["own_lam1"]):
        pytest.skip("the program was not asked to choose on this draw")
    rule = "bic-authors"
    model = LikelihoodMNPCA(2, alpha_row=rule, alpha_col=rule, center=False).fit(stored["Y"])
    assert model.alpha_row_ == pytest.approx(float(stored["own_lam1"]))
    assert model.alpha_col_ == pytest.approx(float(stored["own_lam2"]))
