"""LSSVMClassifier keeps scikit-learn's contract."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from reproduction.baselines import LSSVMClassifier


@parametrize_with_checks([LSSVMClassifier(), LSSVMClassifier(width=1.0, cv=3, random_state=0)])
def test_contract(estimator, check):
    check(estimator)
