"""Tests that take `name` run once for every estimator of one matrix."""

import pytest

from mnpca.estimators._files import MATRIX_MODELS


@pytest.fixture(params=MATRIX_MODELS)
def name(request):
    return request.param
