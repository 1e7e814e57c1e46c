"""Every engine against plain dense algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import random_sparse_precision
from mnpca.engines import engine_for
from mnpca.engines.engine import Engine

n, p = 30, 20


@pytest.fixture
def matrices():
    """Y, the factors of a signal, A and B."""
    rng = np.random.default_rng(0)
    # Values that float32 represents exactly, so that only the engine's own rounding shows.
    Y = rng.standard_normal((n, p)).astype(np.float32).astype(np.float64)
    left, right = rng.standard_normal((n, 3)), rng.standard_normal((p, 3))
    A = random_sparse_precision(n, 0.1, 8, 0)
    B = random_sparse_precision(p, 0.1, 8, 1)
    return Y, left, right, A, B


@pytest.fixture(params=["formed", "factors"])
def formed(request, monkeypatch):
    """Gram matrices whole and as factors, where an engine has both."""
    if request.param == "factors":
        for name, value in (
            ("device_rows.FORMED", 4),
            ("device_rows.DENSE_PRECISION", 4),
            ("device_rows.HOST_TILE", 7),
            ("device_rows.DEVICE_TILE", 7),
            ("device_rows.SUMMED", 11),
            ("arrays.ROOM", 100),
            ("rows.BLOCK", 7),
            ("gram.SMALL", 0),
            ("rows.TALL", 100),
        ):
            monkeypatch.setattr(f"mnpca.engines.{name}", value)


def close(place, actual, expected):
    np.testing.assert_allclose(
        actual, expected, rtol=place.tol, atol=place.tol * np.abs(expected).max()
    )


def test_an_engine_holds_the_matrix(place, matrices):
    Y, *_ = matrices
    engine = engine_for(place.put(Y))
    assert isinstance(engine, Engine)
    assert engine_for(engine) is engine
    assert engine.shape == (n, p)
    assert engine.extremes() == (Y.min(), Y.max())
    close(place, engine.column_means(), Y.mean(axis=0))
    offset = np.linspace(-1.0, 1.0, p)
    close(place, engine.column_mean_squares(offset), np.mean((Y - offset) ** 2, axis=0))
    rows, cols = np.array([3, 7, 29]), np.array([0, 19])
    np.testing.assert_array_equal(engine.block(rows, cols), Y[np.ix_(rows, cols)])
    np.testing.assert_array_equal(np.concatenate(list(engine.row_blocks())), Y)


def test_a_missing_value_shows_in_the_extremes(place, matrices):
    Y, *_ = matrices
    Y[4, 4] = np.nan
    assert np.isnan(engine_for(place.put(Y)).extremes()).all()


def test_standardized(place, matrices):
    Y, *_ = matrices
    offset = np.linspace(-1.0, 1.0, p)
    engine = engine_for(place.put(Y)).standardized(offset, np.full(p, 2.0))
    scaled = engine.block(np.arange(n), np.arange(p))
    np.testing.assert_allclose(scaled, (Y - offset) / 2.0, rtol=1e-6)
    np.testing.assert_array_equal(scaled, scaled.astype(np.float32))
    units = np.linspace(0.5, 2.0, n)
    divided = engine_for(place.put(Y)).rows_divided(units).block(np.arange(n), np.arange(p))
    close(place, divided, Y / units[:, None])


def test_products(place, matrices, formed):
    Y, left, right, A, B = matrices
    engine = engine_for(place.put(Y))
    close(place, engine.times(right), Y @ right)
    close(place, engine.transposed_times(left), Y.T @ left)
    assert engine.times(right).dtype == np.float64
    for rows, cols in ((A, B), (A.diagonal(), B), (A, B.diagonal()), (A.diagonal(), B.diagonal())):
        dense = [m.toarray() if sp.issparse(m) else np.diag(m) for m in (rows, cols)]
        expected = np.trace(dense[0] @ Y @ dense[1] @ Y.T)
        close(place, engine.weighted_norm(rows, cols), expected)


def test_squares(place, matrices, formed):
    Y, *_ = matrices
    engine = engine_for(place.put(Y))
    weights, row_weights = np.arange(1.0, p + 1), np.arange(1.0, n + 1)
    squares = engine.squares()
    close(place, squares.times(weights), Y**2 @ weights)
    close(place, squares.transposed_times(row_weights), row_weights @ Y**2)


def test_norms_of_the_residual(place, matrices, formed):
    Y, left, right, A, B = matrices
    engine, residual = engine_for(place.put(Y)), Y - left @ right.T
    for rows, cols in ((A, B), (A.diagonal(), B.diagonal())):
        A_, B_ = (m.toarray() if sp.issparse(m) else np.diag(m) for m in (rows, cols))
        close(place, engine.row_norms(left, right, cols), np.diag(residual @ B_ @ residual.T))
        close(place, engine.col_norms(left, right, rows), np.diag(residual.T @ A_ @ residual))


def grams(engine, Y, left, right, A, B):
    """A Gram of each side beside the matrix it stands for."""
    residual = Y - left @ right.T
    spread = np.diag([1.0, 2.0, 3.0])
    rows = residual @ B @ residual.T + left @ spread @ left.T
    yield engine.row_gram(left, right, B, left, spread), rows
    cols = residual.T @ A @ residual + right @ spread @ right.T
    yield engine.col_gram(left, right, A, right, spread), cols
    diagonal = np.diag(A.diagonal())
    cols = residual.T @ diagonal @ residual + right @ spread @ right.T
    yield engine.col_gram(left, right, A.diagonal(), right, spread), cols


def every_entry(gram):
    i, j = (side.ravel() for side in np.indices((gram.size, gram.size)))
    return gram.entries(i, j).reshape(gram.size, gram.size)


def test_grams(place, matrices, formed):
    engine = engine_for(place.put(matrices[0]))
    for gram, expected in grams(engine, *matrices):
        close(place, gram.diagonal(), np.diag(expected))
        close(place, every_entry(gram), expected)


def test_a_gram_gives_what_is_asked_for(place, matrices, formed, monkeypatch):
    # A component of three items and two of two: one product, and products one by one.
    monkeypatch.setattr("mnpca.engines.gram.SMALL", 2)
    engine = engine_for(place.put(matrices[0]))
    for gram, full in grams(engine, *matrices):
        size = gram.size
        extra = random_sparse_precision(size, 0.2, 4, 5) * np.abs(full).max()
        gram.extra = sp.csr_array(extra - sp.diags_array(extra.diagonal()))
        weights = np.linspace(0.1, 0.2, size)
        gram.rescale(weights)
        full = (
            (full + gram.extra.toarray() / np.outer(weights, weights)) * weights * weights[:, None]
        )
        close(place, every_entry(gram), full)
        assert_large_entries(place, gram, full)
        order, bounds = np.array([5, 2, 9, 11, 0, 7, 8]), np.array([0, 3, 5, 7])
        flat = gram.component_blocks(order, bounds, np.array([0, 9, 13, 17]))
        blocks = [full[np.ix_(order[a:b], order[a:b])] for a, b in ((0, 3), (3, 5), (5, 7))]
        close(place, flat, np.concatenate([block.ravel() for block in blocks]))


def assert_large_entries(place, gram, full):
    above = np.triu(np.abs(full), k=1)[: gram.n_rows]
    level = float(np.median(above[above > 0]))
    gap = np.sort(np.abs(above[above > 0] - level))[1]
    assert gap > place.tol * np.abs(full).max(), "the level must separate the entries"
    level += gap / 2
    found = gram.large_entries(level)
    expected = np.nonzero(above > level)
    assert sorted(zip(found.i, found.j, strict=True)) == sorted(zip(*expected, strict=True))
    close(place, found.value, full[found.i, found.j])


def test_nothing_is_large(place, matrices, formed):
    engine = engine_for(place.put(matrices[0]))
    for gram, full in grams(engine, *matrices):
        found = gram.large_entries(2 * np.abs(full).max())
        assert len(found.i) == len(found.j) == len(found.value) == 0


def test_a_filtered_gram(place, matrices, formed):
    engine = engine_for(place.put(matrices[0]))
    rng = np.random.default_rng(3)
    for gram, full in grams(engine, *matrices):
        size = gram.size
        linked, rest = np.arange(1, 9), np.concatenate([[0], np.arange(9, size)])
        mixed = random_sparse_precision(len(linked), 0.3, 8, 2).toarray()
        mix = np.zeros((len(linked), size))
        mix[:, linked] = mixed
        whole = np.vstack([mix, np.eye(size)[rest]])
        noise = rng.standard_normal((size, size)) * (rng.random((size, size)) < 0.1)
        extra = noise + noise.T
        expected = whole @ full @ whole.T + extra
        scores = gram.filtered(sp.csr_array(mix), rest, sp.csr_array(extra))
        assert (scores.n_rows, scores.size) == (len(linked), size)
        i = np.repeat(np.arange(len(linked)), size)
        j = np.tile(np.arange(size), len(linked))
        close(place, scores.entries(i, j), expected[i, j])
        assert_large_entries(place, scores, expected)


def test_an_unknown_type_is_refused():
    with pytest.raises(TypeError, match="No engine for a matrix of type list"):
        engine_for([[1.0, 2.0]])
