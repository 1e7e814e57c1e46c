"""Expectations of incomplete matrices: exact where dense formulas are at hand."""

import numpy as np
import pytest

from mnpca.datasets import chain_precision, sample_matrix_normal
from mnpca.model.effects import Covariates
from mnpca.solvers.missing import Incomplete, first_guess
from mnpca.solvers.missing.start import observed_scales

ROWS, COLS = chain_precision(12, 0.6), chain_precision(9, 0.5)


def none(n=12, p=9, intercept=True):
    return Covariates(np.zeros((n, 0)), np.zeros((p, 0)), intercept)


def problem(seed=0, share=0.25, covariates=None):
    rng = np.random.default_rng(seed)
    matrix = sample_matrix_normal(ROWS, COLS, seed)
    missing = rng.random(matrix.shape) < share
    return Incomplete(np.where(missing, 0.0, matrix), missing, covariates or none()), matrix


def test_missing_cells_become_conditional_means():
    incomplete, matrix = problem()
    signal = np.full(matrix.shape, 0.3)
    completion = incomplete.under(ROWS, COLS).complete(signal, tol=1e-10)
    joint = np.kron(ROWS.toarray(), COLS.toarray())
    hidden = incomplete.missing.ravel()
    noise = (matrix - signal).ravel()
    mean = -np.linalg.solve(
        joint[np.ix_(hidden, hidden)], joint[np.ix_(hidden, ~hidden)] @ noise[~hidden]
    )
    assert completion.filled[incomplete.missing] == pytest.approx(0.3 + mean, abs=1e-8)
    assert np.array_equal(
        completion.filled[~incomplete.missing], incomplete.matrix[~incomplete.missing]
    )


def test_second_moments_of_the_draw_are_those_of_the_noise():
    """S2 = E[R'AR] / n, with the conditional covariance: mean filling falls short of it."""
    total, filled = np.zeros((9, 9)), np.zeros((9, 9))
    repeats = 400
    for seed in range(repeats):
        incomplete, _ = problem(seed)
        expectation = incomplete.under(ROWS, COLS)
        completion = expectation.complete(np.zeros((12, 9)), tol=1e-6)
        drawn = expectation.for_noise(completion, np.random.default_rng(seed))
        total += drawn.T @ (ROWS @ drawn) / (12 * repeats)
        expected = expectation.for_signal(completion)
        filled += expected.T @ (ROWS @ expected) / (12 * repeats)
    truth = np.linalg.inv(COLS.toarray())
    assert np.abs(total - truth).max() < 0.12 * np.abs(truth).max()
    assert np.trace(filled) < 0.85 * np.trace(truth)


def test_drawn_effects_give_back_what_covariates_took():
    rng = np.random.default_rng(0)
    covariates = Covariates(rng.standard_normal((12, 3)), rng.standard_normal((9, 2)), False)
    drawn_size, size = 0.0, 0.0
    for seed in range(200):
        incomplete, _ = problem(seed, 0.0, covariates)
        expectation = incomplete.under(ROWS, COLS)
        completion = expectation.complete(np.zeros((12, 9)))
        drawn = expectation.for_noise(completion, np.random.default_rng(seed))
        rest = expectation.for_signal(completion)
        drawn_size += np.vdot(drawn, ROWS @ drawn @ COLS) / (200 * 12 * 9)
        size += np.vdot(rest, ROWS @ rest @ COLS) / (200 * 12 * 9)
    assert drawn_size == pytest.approx(1.0, abs=0.03)
    assert size == pytest.approx(9 / 12 * 7 / 9, abs=0.03)


def test_effects_and_missing_cells_together_reach_their_joint_solution():
    rng = np.random.default_rng(3)
    covariates = Covariates(rng.standard_normal((12, 1)), np.zeros((9, 0)), False)
    incomplete, _ = problem(3, 0.15, covariates)
    completion = incomplete.under(ROWS, COLS).complete(np.zeros((12, 9)), tol=1e-10)
    # One design for all cells: the observed ones under their marginal covariance.
    design = np.kron(covariates.row, np.eye(9))
    seen = ~incomplete.missing.ravel()
    covariance = np.linalg.inv(np.kron(ROWS.toarray(), COLS.toarray()))[np.ix_(seen, seen)]
    weight = np.linalg.inv(covariance)
    observed = incomplete.matrix.ravel()[seen]
    joint = np.linalg.solve(
        design[seen].T @ weight @ design[seen], design[seen].T @ weight @ observed
    )
    assert completion.effects.row_coef.ravel() == pytest.approx(joint, abs=0.02)


def test_scales_ignore_the_missing_cells():
    rng = np.random.default_rng(0)
    row, col = rng.uniform(0.5, 2.0, 400), rng.uniform(0.5, 2.0, 300)
    residual = rng.standard_normal((400, 300)) * np.sqrt(np.outer(row, col))
    missing = rng.random(residual.shape) < np.linspace(0.0, 0.8, 400)[:, None]
    found_row, found_col = observed_scales(np.where(missing, 1e6, residual), missing)
    ratio = np.outer(found_row, found_col) / np.outer(row, col)
    assert np.abs(np.log(ratio)).max() < 0.6
    assert np.log(ratio).mean() == pytest.approx(0.0, abs=0.02)


def test_first_guess_of_a_complete_matrix_is_the_matrix():
    incomplete, matrix = problem(share=0.0)
    assert np.array_equal(first_guess(incomplete, 2, True, 0), matrix)


def test_first_guess_finds_a_strong_signal():
    rng = np.random.default_rng(0)
    signal = 3 * rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40)) + 1.0
    matrix = signal + 0.1 * rng.standard_normal(signal.shape)
    missing = rng.random(signal.shape) < 0.3
    incomplete = Incomplete(np.where(missing, 0.0, matrix), missing, none(60, 40))
    guess = first_guess(incomplete, 2, "auto", 0)
    assert np.sqrt(np.mean((guess - signal)[missing] ** 2)) < 0.15


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_first_scales_follow_the_units_of_the_data(unit):
    rng = np.random.default_rng(1000)
    residual = rng.normal(size=(40, 30)) * np.exp(rng.normal(size=(40, 1)))
    missing = rng.random(residual.shape) < 0.2
    row, col = observed_scales(residual, missing)
    scaled_row, scaled_col = observed_scales(unit * residual, missing)
    np.testing.assert_allclose(scaled_row, row, rtol=1e-12)
    np.testing.assert_allclose(scaled_col, unit**2 * col, rtol=1e-12)
