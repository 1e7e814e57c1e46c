"""Fixtures that several rooms use."""

import numpy as np
import pytest


@pytest.fixture(params=["torch", "array_api_strict"])
def put(request):
    """Takes a NumPy array to another library."""
    library = pytest.importorskip(request.param)
    return lambda array: library.asarray(np.array(array))
