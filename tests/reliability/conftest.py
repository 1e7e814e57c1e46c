"""Tests that take `name` run once for every estimator of one matrix."""

import pytest
from tests.reliability.shared import PARAMS


@pytest.fixture(params=PARAMS)
def name(request):
    return request.param
