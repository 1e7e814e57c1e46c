"""scikit-learn's estimator checks."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mnpca import WassersteinMNPCA


@parametrize_with_checks(
    [
        WassersteinMNPCA(),
        # A tolerance that short schedules meet: the checks treat warnings as errors.
        WassersteinMNPCA(n_components=1, method="gradient", max_iter=30, tol=10),
    ]
)
def test_contract(estimator, check):
    check(estimator)
