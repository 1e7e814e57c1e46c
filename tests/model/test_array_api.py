"""The model on arrays of another library gives what it gives on NumPy's."""

import numpy as np
import pytest

from mnpca.datasets import random_sparse_precision
from mnpca.model.gpca import gpca
from mnpca.model.low_rank import LowRank
from mnpca.model.metric import Metric, MetricError
from mnpca.model.objective import Penalty, absolute_sum, best_gauge, objective, sizes
from mnpca.model.sparse import logdet

N, P = 9, 7


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    signal = LowRank(rng.normal(size=(N, 2)), rng.normal(size=(P, 2)))
    A, B = random_sparse_precision(N, 0.4, 6.0, 1), random_sparse_precision(P, 0.4, 6.0, 2)
    return rng.normal(size=(N, P)), signal, 2 * A, B


def placed(put, Y, signal, A, B):
    return put(Y), LowRank(*map(put, signal)), put(A.toarray()), put(B.toarray())


@pytest.mark.parametrize("with_metrics", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_generalized_pca(put, parts, with_metrics, turned):
    Y, _, A, B = parts
    Y, A, B = (Y.T, B, A) if turned else (Y, A, B)
    metrics = (A.toarray(), B.toarray()) if with_metrics else (None, None)
    here, there = (
        gpca(
            place(Y),
            3,
            *(
                Metric(size, None if metric is None else place(metric))
                for size, metric in zip(Y.shape, metrics, strict=True)
            ),
        )
        for place in (np.asarray, put)
    )
    for own, expected in zip(there[:3], here[:3], strict=True):
        assert isinstance(own, np.ndarray)
        np.testing.assert_allclose(own, expected, atol=1e-10)
    if with_metrics:
        with pytest.raises(MetricError, match="not positive semi-definite"):
            gpca(put(Y), 1, Metric(len(Y), put(-metrics[0])), Metric(Y.shape[1]))


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
