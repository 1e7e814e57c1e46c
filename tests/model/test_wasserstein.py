"""Objectives and gradients against singular value decompositions and finite differences."""

import numpy as np
import pytest

from mnpca.model.wasserstein import (
    DISCREPANCIES,
    spectrum,
    tall_gradient,
    wide_gradient,
)

N, P, K = 9, 6, 2


def factors(rng, size):
    """A factor that is far from orthogonal and from symmetric."""
    return np.eye(size) + 0.3 * rng.normal(size=(size, size))


@pytest.fixture
def rng():
    return np.random.default_rng(1000)


@pytest.fixture
def residual(rng):
    """A residual that lacks K directions, as that of a signal does."""
    left, values, right = np.linalg.svd(rng.normal(size=(N, P)), full_matrices=False)
    return (left * np.append(values[: P - K], np.zeros(K))) @ right


def by_definition(name, whitened):
    """The objectives as the paper prints them."""
    frobenius = np.linalg.norm(whitened)
    nuclear = np.linalg.norm(whitened, "nuc")
    size = whitened.size
    if name == "relaxed":
        return frobenius**2 / size**0.5 - 2 * nuclear / size**0.25
    return frobenius**4 / size - 2 * nuclear**2 / size**0.5


def analytic(name, q, r, residual, part=slice(K, None)):
    """Value and the two gradients in A = Q'Q and B = R'R."""
    carried = residual @ r.T
    moment = residual.T @ q.T @ q @ residual
    parts = spectrum((q @ carried).T @ (q @ carried), part)
    value, slope = parts.measure(DISCREPANCIES[name], residual.size)
    return (
        value,
        tall_gradient(carried, parts, slope),
        wide_gradient(moment @ r.T, parts, slope),
    )


def numerical(function, matrix, step=1e-6):
    gradient = np.zeros_like(matrix)
    for index in np.ndindex(*matrix.shape):
        ahead, behind = matrix.copy(), matrix.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (function(ahead) - function(behind)) / (2 * step)
    return gradient


@pytest.mark.parametrize("name", DISCREPANCIES)
def test_values_and_gradients_in_the_factors(name, residual, rng):
    q, r = factors(rng, N), factors(rng, P)
    value, row, col = analytic(name, q, r, residual)
    assert value == pytest.approx(by_definition(name, q @ residual @ r.T))
    expected = numerical(lambda m: by_definition(name, m @ residual @ r.T), q)
    np.testing.assert_allclose(2 * q @ row, expected, atol=1e-6)
    expected = numerical(lambda m: by_definition(name, q @ residual @ m.T), r)
    np.testing.assert_allclose(2 * r @ col, expected, atol=1e-6)


def test_gradient_of_the_objective_with_the_best_signal(rng):
    """The signal follows A and B, and the gradient needs no term for that."""
    data = rng.normal(size=(N, P)) + 3 * rng.normal(size=(N, 1)) @ rng.normal(size=(1, P))
    q, r = factors(rng, N), factors(rng, P)

    def best(q, r):
        left, values, right = np.linalg.svd(q @ data @ r.T, full_matrices=False)
        return by_definition("relaxed", (left[:, K:] * values[K:]) @ right[K:])

    value, row, col = analytic("relaxed", q, r, data, slice(0, P - K))
    assert value == pytest.approx(best(q, r))
    np.testing.assert_allclose(2 * q @ row, numerical(lambda m: best(m, r), q), atol=1e-6)
    np.testing.assert_allclose(2 * r @ col, numerical(lambda m: best(q, m), r), atol=1e-6)
