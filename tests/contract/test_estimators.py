"""scikit-learn's checks of the estimators of matrices and tensors, nothing expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mnpca import MNPCA, GeneralizedPCA, LikelihoodMNPCA, TensorMNPCA, WassersteinMNPCA


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
        TensorMNPCA(1),
        TensorMNPCA(1, noise="diagonal", center=True),
    ]
)
def test_contract(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        GeneralizedPCA(),
        GeneralizedPCA(2, solver="krylov"),
        LikelihoodMNPCA(alpha_row=0.3, alpha_col=0.3),  # the criterion takes many times as long
        LikelihoodMNPCA(alpha_row=0.0, alpha_col=0.3, low_rank_step="closed", missing="error"),
        WassersteinMNPCA(),
        # A tolerance that short schedules meet: the checks treat warnings as errors.
        WassersteinMNPCA(n_components=1, method="gradient", max_iter=30, tol=10),
    ]
)
def test_contract_without_warnings(estimator, check):
    check(estimator)
