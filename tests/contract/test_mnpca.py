"""scikit-learn's checks of MNPCA, nothing expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mnpca import MNPCA


@parametrize_with_checks(
    [
        MNPCA(),
        MNPCA(n_components=1),
        MNPCA(n_components=1, noise="graph", center=True),
        MNPCA(n_components=1, noise="diagonal", robust=True),
    ]
)
def test_contract(estimator, check):
    check(estimator)
