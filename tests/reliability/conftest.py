"""Tests that take `name` run once for every estimator."""

import pytest

from mnpca.estimators._saving import MODELS


@pytest.fixture(params=MODELS)
def name(request):
    return request.param
