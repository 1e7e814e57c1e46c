"""The paper's program: its rounds, its rule to stop, its components."""

import numpy as np
import pytest

from mnpca.metrics import psnr
from mnpca.model.gpca import truncated_svd
from reproduction.baselines import ProgramMNPCA, make_reducer
from reproduction.baselines.program import _misfit, _regress
from reproduction.paper_draws import paper_draw_small


@pytest.fixture(scope="module")
def data():
    return paper_draw_small(8, 1)


def test_it_stops_when_its_objective_rises_or_settles(data):
    model = ProgramMNPCA(2, rule="bic-authors").fit(data.Y)
    falls = -np.diff(model.objective_history_)
    assert (falls[:-1] > 1e-4).all()
    assert falls[-1] <= 1e-3 * (abs(model.objective_history_[-2]) + 1e-5)


def test_signal_and_components(data):
    model = ProgramMNPCA(3, fit_rank=2, rule="bic-authors").fit(data.Y)
    assert model.low_rank_.left.shape == (300, 2)
    assert model.transform(data.Y[:7]).shape == (7, 3)
    assert abs(psnr(model.low_rank_.dense(), data.signal) - 16.8) < 0.5
    gram = model.gpca_.components_ @ (model.col_precision_ @ model.gpca_.components_.T)
    np.testing.assert_allclose(gram, np.eye(3), atol=1e-8)


def test_regressions_never_raise_the_misfit(data):
    model = ProgramMNPCA(2).fit(data.Y)
    start = truncated_svd(data.Y, 2).low_rank()
    precisions = (model.row_precision_, model.col_precision_)
    signal = _regress(data.Y, start, *precisions)
    assert _misfit(data.Y, signal, *precisions) < _misfit(data.Y, start, *precisions)


def test_in_the_registry(data):
    assert isinstance(make_reducer("MN-PCA-program", 2), ProgramMNPCA)


def test_bad_input(data):
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        ProgramMNPCA(1).fit(data.Y[:, :1])
    with pytest.raises(ValueError, match="'rule' parameter"):
        ProgramMNPCA(1, rule="aic").fit(data.Y)
