"""scikit-learn's checks of TensorMNPCA, whose matrices are those of MNPCA."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mnpca import TensorMNPCA


# The checks' data are no low-rank signal in noise, and the estimator may say so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([TensorMNPCA(1), TensorMNPCA(1, noise="diagonal", center=True)])
def test_contract(estimator, check):
    check(estimator)
