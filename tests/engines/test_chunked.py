"""Matrices that are read in blocks of rows: the dense engine's numbers, whatever the blocks."""

import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca import MNPCA, load
from mnpca.datasets import make_paper_small
from mnpca.engines import engine_for, rows
from mnpca.engines.engine import DenseEngine, Engine
from mnpca.engines.file_rows import FileRows, LazyRows, scratch
from mnpca.engines.rows import ArrayRows
from mnpca.engines.threads import worker_threads

da = pytest.importorskip("dask.array")
dask_rows = pytest.importorskip("mnpca.engines.dask_rows")


def networks(size, n_pairs):
    """Precision with as many strongly linked pairs in front."""
    linked = sp.block_diag([sp.coo_array([[1.0, -0.7], [-0.7, 1.0]])] * n_pairs)
    return sp.csr_array(sp.block_diag([linked, sp.eye_array(size - 2 * n_pairs)]))


@pytest.fixture(scope="module")
def data():
    """Make three blocks of rows, with edges within and between them."""
    n, p = 300, 30
    shuffled = np.random.default_rng(0).permutation(n)
    return make_paper_small(
        seed=5,
        n_samples=n,
        n_features=p,
        row_precision=networks(n, 60)[shuffled][:, shuffled],
        col_precision=networks(p, 6),
    )


@pytest.fixture(scope="module")
def in_memory(data):
    return MNPCA(2, noise="graph", prior="gaussian").fit(data.Y)


def make_small_blocks(monkeypatch):
    """Make blocks of 128 rows."""
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows, "BLOCK", 128)
    monkeypatch.setattr(dask_rows, "BLOCK", 128)


@pytest.fixture
def small_blocks(monkeypatch):
    make_small_blocks(monkeypatch)


@pytest.fixture(scope="module")
def dask_data(data):
    return da.from_array(data.Y, chunks=(120, 13))


@pytest.fixture(scope="module")
def dask_model(dask_data):
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_small_blocks(monkeypatch)
        return MNPCA(2, noise="graph", prior="gaussian").fit(dask_data)


@pytest.fixture
def mapped(data, tmp_path, small_blocks):
    np.save(tmp_path / "Y.npy", data.Y)
    return np.load(tmp_path / "Y.npy", mmap_mode="r")


def assert_same_model(model, expected, tol=1e-4):
    # Sums in float32 differ by 1e-8. The second component, just above the noise, multiplies that.
    signal = expected.denoise()
    limit = tol * np.linalg.norm(signal)
    assert np.linalg.norm(np.asarray(model.denoise()) - signal) <= limit
    for side in ("row_precision_", "col_precision_"):
        ours, theirs = getattr(model, side), getattr(expected, side)
        assert ours.nnz == theirs.nnz
        assert abs(ours - theirs).max() <= tol * abs(theirs).max()


def test_a_mapped_file_on_two_threads_gives_the_numbers_of_memory(mapped, in_memory, tmp_path):
    """And so does a fit on one thread resumed from a checkpoint of it."""
    assert isinstance(engine_for(mapped).rows, LazyRows)
    model = MNPCA(2, noise="graph", prior="gaussian", n_jobs=2)
    model.fit(mapped, checkpoint=tmp_path / "fit")
    assert_same_model(model, in_memory)
    np.testing.assert_allclose(model.objective_history_, in_memory.objective_history_, rtol=1e-4)
    assert model.evidence_ == pytest.approx(in_memory.evidence_, rel=1e-6)
    assert model.noise_variance_ == pytest.approx(in_memory.noise_variance_, rel=1e-4)
    again = MNPCA(2, noise="graph", prior="gaussian").fit(mapped, resume_from=tmp_path / "fit")
    assert_same_model(again, in_memory)


def test_a_dask_array_does_too(dask_model, in_memory):
    assert_same_model(dask_model, in_memory)


def test_any_scheduler_of_dask_will_do(data):
    import dask

    X = da.from_array(data.Y[:100], chunks=(40, 30))
    expected = engine_for(X).standardized(np.zeros(30), 2.0).times(np.eye(30, 3))
    with dask.config.set(scheduler="processes", num_workers=1):
        engine = engine_for(X).standardized(np.zeros(30), 2.0)
        np.testing.assert_array_equal(engine.times(np.eye(30, 3)), expected)
    np.testing.assert_allclose(expected, data.Y[:100, :3] / 2.0, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the dead worker's sockets
def test_a_cluster_gives_the_same_numbers_though_a_worker_is_killed(data):
    """Two worker processes; one is killed in the middle of the fit."""
    distributed = pytest.importorskip("distributed")
    X = da.from_array(data.Y, chunks=(150, 15))
    quick = {"noise": "diagonal", "center": False, "prior": "gaussian"}
    model, expected = MNPCA(2, **quick), MNPCA(2, **quick)
    killed = []

    def kill(progress):
        if "unequal" in progress.stage and progress.iteration == 1 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        model.fit(X, callback=kill)
        alive = client.run(os.getpid).values()
    assert len(killed) == 1
    assert killed[0] not in alive
    assert_same_model(model, expected.fit(data.Y), tol=1e-6)


def test_answers_of_a_dask_model_are_lazy(data, dask_data, dask_model, in_memory, tmp_path):
    X, model = dask_data, dask_model
    signal, std = model.denoise(return_std=True)
    scores = model.transform(X)
    for lazy in (signal, std, scores, model.inverse_transform(scores), model.score_samples(X)):
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == (120, 120, 60)
    expected_scores = in_memory.transform(data.Y)
    close = {"rtol": 1e-5, "atol": 1e-4}
    np.testing.assert_allclose(scores, expected_scores, **close)
    np.testing.assert_allclose(std, in_memory.denoise(return_std=True)[1], **close)
    np.testing.assert_allclose(
        model.inverse_transform(scores), in_memory.inverse_transform(expected_scores), **close
    )
    np.testing.assert_allclose(model.score_samples(X), in_memory.score_samples(data.Y), atol=1e-3)
    assert model.score(X) == pytest.approx(in_memory.score(data.Y), rel=1e-6)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").denoise(), signal)


def test_parquet_through_dask(data, tmp_path, small_blocks):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data.Y, columns=[f"x{j}" for j in range(data.Y.shape[1])])
    frame.to_parquet(tmp_path / "Y.parquet", row_group_size=110)
    X = dd.read_parquet(tmp_path / "Y.parquet").to_dask_array(lengths=True)
    np.testing.assert_array_equal(engine_for(X).times(np.eye(30)), data.Y)


def test_zarr_through_dask(data, tmp_path):
    pytest.importorskip("zarr")
    da.from_array(data.Y[:100], chunks=(40, 30)).to_zarr(tmp_path / "Y.zarr")
    engine = engine_for(da.from_zarr(tmp_path / "Y.zarr"))
    np.testing.assert_array_equal(engine.times(np.eye(30)), data.Y[:100])


@pytest.mark.filterwarnings("ignore::mnpca.ModelCheckWarning")
def test_what_cannot_be_done_in_blocks_is_said(data):
    X = da.from_array(data.Y[:50], chunks=(20, 30))
    with pytest.raises(ValueError, match="unknown length"):
        MNPCA(2).fit(X[X[:, 0] > 0])
    with pytest.raises(TypeError, match="NumPy array"):
        MNPCA(2, robust=True).fit(X)
    with pytest.raises(ValueError, match="outside NumPy"):
        MNPCA(2).fit(X, row_covariates=np.ones((50, 1)))
    hidden = da.where(X > 2.0, np.nan, X)
    with pytest.raises(ValueError, match="NaN"):
        MNPCA(2).fit(hidden)
    model = MNPCA(2, noise="diagonal").fit(X)
    with pytest.raises(ValueError, match="NaN"):
        model.transform(hidden).compute()
    with pytest.raises(ValueError, match="expecting 30 features"):
        model.transform(X[:, :10])


@pytest.mark.filterwarnings("ignore::mnpca.ModelCheckWarning")
def test_a_mapped_file_with_missing_cells_or_covariates_is_taken_into_memory(data, tmp_path):
    Y = data.Y[:90].copy()
    Y[3, 4] = np.nan
    np.save(tmp_path / "Y.npy", Y)
    mapped = np.load(tmp_path / "Y.npy", mmap_mode="r")
    options = {"noise": "diagonal", "prior": "gaussian", "max_iter": 1, "tol": 1.0}
    expected = MNPCA(2, **options).fit(Y)
    np.testing.assert_array_equal(MNPCA(2, **options).fit(mapped).denoise(), expected.denoise())
    covariates = np.arange(70.0)[:, None] % 7
    expected = MNPCA(2, **options).fit(data.Y[20:90], row_covariates=covariates)
    model = MNPCA(2, **options).fit(mapped[20:], row_covariates=covariates)
    np.testing.assert_allclose(model.denoise(), expected.denoise(), atol=1e-8)


@pytest.mark.filterwarnings("ignore::mnpca.ModelCheckWarning")
def test_whole_numbers(data, tmp_path):
    counts = np.rint(10 * data.Y[:100]).astype(np.int64)
    np.save(tmp_path / "counts.npy", counts)
    quick = {"noise": "diagonal", "prior": "gaussian"}
    expected = MNPCA(2, **quick).fit(counts)
    for X in (
        np.load(tmp_path / "counts.npy", mmap_mode="r"),
        da.from_array(counts, chunks=(25, 30)),
    ):
        half = np.full((30, 1), 0.5)
        np.testing.assert_allclose(engine_for(X).times(half), counts @ half)
        model = MNPCA(2, **quick).fit(X)
        np.testing.assert_allclose(model.denoise(), expected.denoise(), rtol=1e-3, atol=1e-3)


def test_a_wide_mapped_file_is_taken_into_memory(data, tmp_path):
    np.save(tmp_path / "wide.npy", data.Y[:20])
    mapped = np.load(tmp_path / "wide.npy", mmap_mode="r")
    assert isinstance(engine_for(mapped).rows, ArrayRows)


def test_every_operation_in_uneven_blocks(data, monkeypatch):
    """Blocks of 256 rows, the last one shorter, on two threads."""
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows, "BLOCK", 256)
    Y = data.Y.astype(np.float32)
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((len(Y), 3)), rng.standard_normal((Y.shape[1], 3))
    dense, blocks = DenseEngine(Y), Engine(FileRows(Y))
    assert len(blocks.rows.parts) == 2
    B = sp.csr_array(data.col_precision)
    with worker_threads(2):
        signal = (left, right, B, left, np.eye(3))
        ours, theirs = blocks.row_gram(*signal), dense.row_gram(*signal)
        weights = 1.0 / np.sqrt(theirs.diagonal())
        np.testing.assert_array_equal(1.0 / np.sqrt(ours.diagonal()), weights)
        ours.rescale(weights)
        theirs.rescale(weights)
        found, expected = ours.large_entries(0.6), theirs.large_entries(0.6)
    key, value = found.i * len(Y) + found.j, found.value
    expected_key = expected.i * len(Y) + expected.j
    np.testing.assert_array_equal(np.sort(key), np.sort(expected_key))
    np.testing.assert_array_equal(value[np.argsort(key)], expected.value[np.argsort(expected_key)])
    # The same entry twice, and one that is known already.
    i, j = np.array([3, 3, 200]), np.array([290, 290, 291])
    for _ in range(2):
        np.testing.assert_array_equal(ours.entries(i, j), theirs.entries(i, j))


def test_scratch_files_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    array = scratch((3, 4), np.float32)
    array[:] = 1.0
    assert isinstance(array, np.memmap)
    del array
    assert list(tmp_path.iterdir()) == []
    assert scratch((0, 4), np.float32).shape == (0, 4)
