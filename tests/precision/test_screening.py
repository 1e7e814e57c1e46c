"""The compiled pass over S: what it refuses, what it evens out, and which variables it joins."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from mnpca.precision._kernels.screening import screen
from mnpca.precision.problem import ASYMMETRY

from .reference import chain_covariance

P = 150  # not a multiple of the rows that are added at once


@pytest.fixture
def S():
    return chain_covariance(P, 80, seed=60)


def one_row(alpha):
    return np.full((1, P), alpha)


@pytest.mark.parametrize("at", [(0, 0), (3, 100), (100, 3), (70, 66), (149, 148)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_entry_that_is_not_finite_is_found(S, at, value):
    S[at] = value
    fault, i, j, _, _ = screen(S, one_row(0.1), ASYMMETRY)
    assert (fault, i, j) == (1, min(at), max(at))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_two_infinities_are_found(S, value):
    S[4, 90] = S[90, 4] = value
    assert screen(S, one_row(0.1), ASYMMETRY)[:3] == (1, 4, 90)


@pytest.mark.parametrize("at", [(3, 100), (100, 3), (149, 148)])
def test_halves_that_differ(S, at):
    labels = screen(S, one_row(0.1), ASYMMETRY)[4]
    size = 1 + abs(S[at])
    for apart, fault, uneven in ((1e-15, 0, 0), (1e-10, 0, 1), (1.1e-6, 2, None)):
        changed = S.copy()
        changed[at] += apart * size
        found = screen(changed, one_row(0.1), ASYMMETRY)
        assert found[0] == fault
        if fault:
            assert found[1:3] == (min(at), max(at))
        else:
            assert found[3] == uneven
            assert np.array_equal(found[4], labels)


def test_variables_without_variance_are_no_fault(S):
    """Their entries are zero and so is the scale to which these are compared."""
    S[[5, 140]], S[:, [5, 140]] = 0.0, 0.0
    fault, _, _, uneven, labels = screen(S, one_row(0.1), ASYMMETRY)
    assert (fault, uneven) == (0, 0)
    assert np.count_nonzero(labels == labels[5]) == 1


@pytest.mark.parametrize("density", [0.002, 0.005, 0.01, 0.05, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_matrix_of_penalties_joins_its_own_edges(S, density, seed):
    rng = np.random.default_rng(seed)
    edges = np.triu(rng.random((P, P)) < density, 1)
    edges |= edges.T
    alpha = np.abs(S) + np.where(edges, -1e-3, 1e-3)
    labels = screen(S, alpha, ASYMMETRY)[4]
    count, expected = connected_components(edges, directed=False)
    # Numbered in order of appearance, as SciPy does.
    assert labels.max() + 1 == count
    assert np.array_equal(labels, expected)


@pytest.mark.parametrize("decades", [6, -6])
def test_halves_are_compared_in_the_units_of_their_variables(S, decades):
    unit = np.logspace(-decades, decades, P)
    S *= np.outer(unit, unit)
    i, j = 3, 100
    size = unit[i] * unit[j] + abs(S[i, j])
    for apart, fault, uneven in ((1e-15, 0, 0), (1e-10, 0, 1), (1.1e-6, 2, 0)):
        changed = S.copy()
        changed[i, j] += apart * size
        found = screen(changed, one_row(0.1), ASYMMETRY)
        assert (found[0], found[3]) == (fault, uneven)


@pytest.mark.parametrize("p", [3, 70])
def test_an_entry_as_large_as_its_penalty_is_no_edge_and_the_diagonal_is_none(p):
    S = np.eye(p)
    S[0, p - 1] = S[p - 1, 0] = 0.5
    alpha = np.full((p, p), 0.5)
    np.fill_diagonal(alpha, 0.0)
    assert screen(S, alpha, ASYMMETRY)[4].tolist() == list(range(p))
    S[0, 1] = S[1, 0] = -0.5
    for at, labels in ((1, [0, *range(p - 1)]), (p - 1, [*range(p - 1), 0])):
        lower = alpha.copy()
        lower[0, at] = lower[at, 0] = 0.49
        assert screen(S, lower, ASYMMETRY)[4].tolist() == labels
    # A chain from the last variable to the first is found whatever stands on the diagonal.
    S = np.eye(p) + 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))
    alpha = np.full((p, p), 0.1)
    np.fill_diagonal(alpha, 0.0)
    assert not screen(S, alpha, ASYMMETRY)[4].any()


@pytest.mark.parametrize("p", [2, 3, 5, 50])
@pytest.mark.parametrize("where", [(0, 1), (-1, 0), (-1, -2)])
@pytest.mark.parametrize("decades", [0, 8])
def test_one_uneven_pair_is_found_in_any_units(p, where, decades):
    """The sums that are compared first are as sharp for small variables as for large ones."""
    unit = 10.0 ** np.linspace(-decades, decades, p)
    S = (0.2 + 0.8 * np.eye(p)) * np.outer(unit, unit)
    assert screen(S, np.full((1, p), 1e99), 1e-6)[3] == 0
    S[where] *= 1 + 1e-9
    assert screen(S, np.full((1, p), 1e99), 1e-6)[3] == 1
    S[where] *= 1 + 1e-4
    i, j = (k % p for k in where)
    assert screen(S, np.full((1, p), 1e99), 1e-6)[:3] == (2, min(i, j), max(i, j))
