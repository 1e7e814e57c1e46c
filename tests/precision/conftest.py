"""Fixtures that tests of compiled passes share."""

import numpy as np
import pytest

from .small import OFF, P


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def B(rng):
    """Regressions of which some exist in one direction only; the diagonal is zero."""
    return rng.normal(size=(P, P)) * (rng.random((P, P)) < 0.6) * OFF


@pytest.fixture
def theta(rng):
    return rng.uniform(0.5, 2.0, size=P)
