"""The least-squares SVM against the bordered system solved directly, and against refits."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

from reproduction.baselines import LSSVMClassifier
from reproduction.baselines._kernel_system import (
    KernelSystem,
    held_out_decisions,
    rbf_kernel,
    squared_distances,
)
from reproduction.baselines._tuning import (
    all_are_right,
    largest_is_right,
    least_error_each,
    one_against_rest,
    squared_error,
    trials,
    typical_distance,
)


@parametrize_with_checks([LSSVMClassifier(), LSSVMClassifier(width=1.0, cv=3, random_state=0)])
def test_contract(estimator, check):
    check(estimator)


def bordered_solution(kernel, regularization, targets):
    n = len(kernel)
    system = np.zeros((n + 1, n + 1))
    system[0, 1:] = system[1:, 0] = 1
    system[1:, 1:] = kernel + np.eye(n) / regularization
    solution = np.linalg.solve(system, np.vstack([np.zeros(targets.shape[1]), targets]))
    return solution[1:], solution[0]


def refitted_decisions(kernel, targets, folds):
    decisions = np.empty_like(targets)
    for fold in folds:
        kept = np.setdiff1d(np.arange(len(kernel)), fold)
        dual, bias = bordered_solution(kernel[np.ix_(kept, kept)], 10.0, targets[kept])
        decisions[fold] = kernel[np.ix_(fold, kept)] @ dual + bias
    return decisions


@pytest.mark.parametrize("n", [60, 620], ids=["full rank", "low rank"])
def test_solutions_and_held_out_decisions(n):
    """620 rows in two dimensions take the thin factor of the kernel, 60 rows the full one."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, 2))
    targets = one_against_rest((rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0.5), 3)
    kernel = rbf_kernel(squared_distances(rows, rows), 1.0)
    system = KernelSystem(kernel)
    # What the thin factor leaves out of the kernel is multiplied by the regularization.
    for regularization, tolerance in ((0.1, 1e-6), (1e4, 1e-4)):
        dual, bias = system.fit(regularization, targets)
        expected, expected_bias = bordered_solution(kernel, regularization, targets)
        np.testing.assert_allclose(bias, expected_bias, atol=tolerance)
        np.testing.assert_allclose(kernel @ dual, kernel @ expected, atol=tolerance)

    folds = np.array_split(rng.permutation(n), 5)
    expected = refitted_decisions(kernel, targets, folds)
    np.testing.assert_allclose(system.leave_folds_out(10.0, targets, folds), expected, atol=1e-6)
    for decisions in held_out_decisions(kernel, 10.0, targets, [folds, folds[::-1]]):
        np.testing.assert_allclose(decisions, expected, atol=1e-6)
    some = np.arange(0, n, 50)
    alone = refitted_decisions(kernel, targets, some[:, None])[some]
    np.testing.assert_allclose(system.leave_one_out(10.0, targets)[some], alone, atol=1e-6)


@pytest.mark.parametrize("cv", ["loo", 5])
def test_tuned_classifier_learns_what_a_line_cannot_in_any_unit(cv):
    rows, labels = make_moons(200, noise=0.15, random_state=0)
    new_rows, new_labels = make_moons(500, noise=0.15, random_state=1)
    model = LSSVMClassifier(cv=cv, random_state=0).fit(rows, labels)
    assert model.score(new_rows, new_labels) > 0.96
    assert abs(model.tuning_accuracy_ - model.score(new_rows, new_labels)) < 0.03
    scaled = LSSVMClassifier(cv=cv, random_state=0).fit(1e3 * rows, labels)
    np.testing.assert_array_equal(scaled.predict(1e3 * new_rows), model.predict(new_rows))
    given = {"width": model.width_, "regularization": model.regularization_}
    fixed = LSSVMClassifier(**given).fit(rows, labels)
    np.testing.assert_allclose(fixed.decision_function(rows), model.decision_function(rows))
    assert np.isnan(fixed.tuning_accuracy_)


def test_two_ways_to_decide():
    targets = one_against_rest(np.array([0, 1, 2, 2]), 3)
    decisions = np.array([[0.5, -1, -1], [-0.3, -0.2, -0.9], [0.1, -1, 0.4], [1, -1, -1.0]])
    assert largest_is_right(decisions, targets).tolist() == [True, True, True, False]
    # No machine claims the second row and two claim the third: both are undecided.
    assert all_are_right(decisions, targets).tolist() == [True, False, False, False]


def test_each_machine_gets_its_own_best_setting():
    rows, labels = load_iris(return_X_y=True)
    targets = one_against_rest(labels, 3)
    splits = [np.array_split(np.random.default_rng(0).permutation(150), 5)]
    candidates = list(trials(squared_distances(rows, rows), targets, splits=splits))
    (chosen,) = least_error_each(candidates, targets)
    for machine, setting in enumerate(chosen):
        errors = {s: squared_error(d[0], targets)[machine] for s, d in candidates}
        assert errors[setting] == min(errors.values())
    assert len(set(chosen)) > 1


def test_rounding_errors_are_no_distance():
    rows = np.concatenate([1e-15 * np.arange(50.0), [1.0, 2.0]])[:, None]
    assert 0.9 < typical_distance(squared_distances(rows, rows)) < 2.1
    assert typical_distance(np.zeros((3, 3))) == 1.0
