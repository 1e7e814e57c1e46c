"""The model on arrays of another library gives what it gives on NumPy's."""

import numpy as np
import pytest

from mnpca.datasets import random_sparse_precision
from mnpca.model.gpca import truncated_svd
from mnpca.model.low_rank import LowRank
from mnpca.model.objective import Penalty, absolute_sum, best_gauge, misfit, objective, sizes
from mnpca.model.rows import gls_scores, gls_weights
from mnpca.model.sparse import logdet

N, P = 9, 7


@pytest.fixture(params=["torch", "array_api_strict"])
def put(request):
    library = pytest.importorskip(request.param)
    return library.asarray


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    signal = LowRank(rng.normal(size=(N, 2)), rng.normal(size=(P, 2)))
    A, B = random_sparse_precision(N, 0.4, 6.0, 1), random_sparse_precision(P, 0.4, 6.0, 2)
    return rng.normal(size=(N, P)), signal, 2 * A, B


def placed(put, Y, signal, A, B):
    return put(Y), LowRank(*map(put, signal)), put(A.toarray()), put(B.toarray())


@pytest.mark.parametrize("mean", [None, np.arange(P) - 2.0])
def test_svd(put, parts, mean):
    here, there = truncated_svd(parts[0], 3, mean=mean), truncated_svd(put(parts[0]), 3, mean=mean)
    np.testing.assert_allclose(there.singular_values, here.singular_values)
    np.testing.assert_allclose(there.left, here.left, atol=1e-10)
    np.testing.assert_allclose(there.right, here.right, atol=1e-10)


def test_logdet(put, parts):
    assert logdet(put(parts[2].toarray())) == pytest.approx(logdet(parts[2]))
    with pytest.raises(np.linalg.LinAlgError):
        logdet(put(-np.eye(3)))


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("weight", [0.3, 0.1 + np.arange(N * N).reshape(N, N)])
def test_penalties_and_objective(put, parts, diagonal, weight):
    there = placed(put, *parts)
    penalty = Penalty(weight, 0.2, diagonal, ridge=0.5)
    assert absolute_sum(there[2], weight, diagonal) == pytest.approx(
        absolute_sum(parts[2], weight, diagonal)
    )
    assert objective(*there, penalty) == pytest.approx(objective(*parts, penalty))
    assert sizes(*there[1:]) == pytest.approx(sizes(*parts[1:]))
    assert best_gauge((N, P), *there[1:], penalty) == pytest.approx(
        best_gauge((N, P), *parts[1:], penalty)
    )


def test_several_matrices_are_a_mean_of_single_ones(parts):
    """The same A for each, one under the other."""
    Y, signal, A, B = parts
    rng = np.random.default_rng(1)
    more, scores = rng.normal(size=(N, P)), rng.normal(size=(N, 2))
    both = np.vstack([Y, more])
    joint = LowRank(np.vstack([signal.left, scores]), signal.right)
    single = [misfit(Y, signal, A, B, 0.0), misfit(more, LowRank(scores, signal.right), A, B, 0.0)]
    assert misfit(both, joint, A, B, 0.0) == pytest.approx(np.mean(single))
    plain = Penalty()
    expected = np.mean(single) - logdet(A) / N - logdet(B) / P
    assert objective(both, joint, A, B, plain) == pytest.approx(expected)
    rows = sizes(signal, A, B)[0] + sizes(LowRank(scores, signal.right), A, B)[0]
    assert sizes(joint, A, B)[0] == pytest.approx(rows)


def test_scores_by_one_product(parts):
    Y, signal, _, B = parts
    loadings = np.column_stack([signal.right, np.zeros(P)])
    expected = gls_scores(Y, B, loadings)
    np.testing.assert_allclose(Y @ gls_weights(B, loadings), expected, atol=1e-12)
    near = np.column_stack([signal.right, signal.right[:, 0]])  # the same direction twice
    np.testing.assert_allclose(
        Y @ gls_weights(B, near) @ near.T, gls_scores(Y, B, near) @ near.T, atol=1e-10
    )
