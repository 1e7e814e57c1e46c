import numpy as np
import pytest

from mnpca.solvers.mnpca.iterate import spreads


def test_spread_is_one_for_gaussian_vectors_and_small_for_local_ones():
    rng = np.random.default_rng(1000)
    assert spreads(rng.normal(size=(5000, 3))) == pytest.approx(1, abs=0.1)
    local = np.zeros((300, 1))
    local[7] = 2.0
    assert spreads(local) == pytest.approx(3 / 300)
