"""The paper's program: its rounds, its rule to stop, its components."""

import numpy as np
import pytest

from mnpca.metrics import psnr
from reproduction.baselines import ProgramMNPCA
from reproduction.paper_draws import paper_draw_small


def test_rounds_signal_and_components():
    data = paper_draw_small(8, 1)
    model = ProgramMNPCA(3, fit_rank=2, rule="bic-authors").fit(data.Y)
    # It stops when its own objective rises or settles.
    falls = -np.diff(model.objective_history_)
    assert (falls[:-1] > 1e-4).all()
    assert falls[-1] <= 1e-3 * (abs(model.objective_history_[-2]) + 1e-5)
    assert model.low_rank_.left.shape == (300, 2)
    assert abs(psnr(model.low_rank_.dense(), data.signal) - 16.8) < 0.5
    gram = model.gpca_.components_ @ (model.col_precision_ @ model.gpca_.components_.T)
    np.testing.assert_allclose(gram, np.eye(3), atol=1e-8)
    assert model.transform(data.Y[:7]).shape == (7, 3)


def test_bad_input():
    X = np.random.default_rng(0).normal(size=(9, 4))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        ProgramMNPCA(1).fit(X[:, :1])
    with pytest.raises(ValueError, match="'rule' parameter"):
        ProgramMNPCA(1, rule="aic").fit(X)
