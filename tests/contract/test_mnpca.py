"""scikit-learn's checks of MNPCA, nothing expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mnpca import MNPCA


# The checks' data are no low-rank signal in noise, and MNPCA may say so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::mnpca.model.whiteness.ModelCheckWarning")
@parametrize_with_checks(
    [
        MNPCA(),
        MNPCA(
            n_components=1,
            noise="diagonal",
            robust=True,
            missing="error",
            max_iter=1,
            tol=1.0,
            prior="gaussian",
        ),
    ]
)
def test_contract(estimator, check):
    check(estimator)
