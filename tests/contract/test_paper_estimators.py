"""scikit-learn's contract for the estimators of the paper."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mnpca import GeneralizedPCA, LikelihoodMNPCA


@parametrize_with_checks(
    [
        GeneralizedPCA(),
        GeneralizedPCA(2, solver="krylov"),
        LikelihoodMNPCA(alpha_row=0.3, alpha_col=0.3),  # the criterion takes many times as long
        LikelihoodMNPCA(alpha_row=0.0, alpha_col=0.3, low_rank_step="closed", missing="error"),
    ]
)
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [GeneralizedPCA, LikelihoodMNPCA])
def test_unknown_options_are_refused(kind):
    with pytest.raises(ValueError, match="'center' parameter"):
        kind(2, center="no").fit([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
