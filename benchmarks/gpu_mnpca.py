"""MNPCA with its matrix on a GPU: time, edges and signal against the planted truth."""

import cProfile
import pstats
import time
import warnings

import gpu_data
import numpy as np
import scipy.sparse as sp
import torch

from mnpca import MNPCA
from mnpca.engines.threads import worker_threads
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.low_rank_step import low_rank_step
from mnpca.solvers.mnpca.standardized import StandardizedData

FLOAT32, TF32, BANDWIDTH = 48e12, 220e12, 4e12


def wide(options):
    """1000 x 6000 in at most 30 s."""
    n, p = options.rows or 1000, options.columns or 6000
    # A pass over the matrix for every product of the subspace and variational iterations.
    floor = 500 * 4 * n * p / BANDWIDTH + 20 * 2 * n * p * (n + p) / FLOAT32
    _run(options, n, p, 0.5, floor, "500 passes over the matrix, 20 pairs of Gram matrices")


def tall(options):
    """1,000,000 x 2000 in at most 300 s."""
    n, p = options.rows or 1_000_000, options.columns or 2000
    floor = n * n * p / TF32 + 500 * 4 * n * p / BANDWIDTH + 20 * 4 * n * p * p / FLOAT32
    what = "one search of all pairs of rows, 500 passes over the matrix, 20 Gram matrices"
    _run(options, n, p, 0.3, floor, what)


def _run(options, n, p, strength, floor, what):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _warm_up(options.device)
    print(f"warm-up {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    data = gpu_data.plant(
        n, p, options.rank, strength=strength, device=options.device, seed=options.seed
    )
    _wait(options.device)
    print(f"{n} x {p} drawn in {time.perf_counter() - start:.1f} s", flush=True)
    print(f"floor {floor:.1f} s: {what}")
    oracle = _oracle(data, options.rank)
    rank = options.rank
    wanted = {"fixed": [rank], "auto": ["auto"], "both": [rank, "auto"]}[options.components]
    for components in wanted:
        _fit(data, components, oracle, options)


def _warm_up(device):
    """Load libraries and compile kernels on small data."""
    data = gpu_data.plant(3000, 200, 1, strength=1.0, device=device, seed=1)
    MNPCA(1).fit(data.Y)


def _oracle(data, rank):
    """Mean square error of the signal estimated with the true A and B."""
    start = time.perf_counter()
    standardized = StandardizedData.of(data.Y, False, "graph")
    with worker_threads():
        noise = standardized.to_scaled(NoiseModel(*data.noise_sides()))
        posterior = low_rank_step(
            standardized.engine, noise.row, noise.col, rank, center=True, max_sweeps=20
        )
    right = standardized.scale * posterior.right
    right[:, -1] += standardized.offset
    error = data.squared_error(posterior.left, right)
    print(f"oracle in {time.perf_counter() - start:.1f} s, error {error:.3g}", flush=True)
    return error


def _fit(data, components, oracle, options):
    lines = []
    begin = time.perf_counter()

    def note(progress):
        now = time.perf_counter() - begin
        lines.append(f"  {now:7.1f} s  {progress.stage}, iteration {progress.iteration}")
        print(lines[-1], flush=True)

    model = MNPCA(components)
    profile = cProfile.Profile() if options.profile else None
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if profile:
            profile.enable()
        model.fit(data.Y, callback=note)
        _wait(options.device)
        if profile:
            profile.disable()
    seconds = time.perf_counter() - begin
    if profile:
        for order in ("tottime", "cumulative"):
            pstats.Stats(profile).sort_stats(order).print_stats(28)
    memory = torch.cuda.max_memory_allocated() / 2**30 if options.device == "cuda" else 0.0
    _report(data, model, components, oracle, seconds, memory, options.rank)
    for warning in told:
        print("  warned:", str(warning.message)[:300])


def _report(data, model, components, oracle, seconds, memory, rank):
    left, right = (factor.cpu().numpy().astype(float) for factor in model.low_rank_)
    left = np.column_stack([left, np.ones(len(left))])
    right = np.column_stack([right, model.mean_.cpu().numpy()])
    loss = 10 * np.log10(data.squared_error(left, right) / oracle)
    print(
        f"n_components={components!r}: {seconds:.1f} s, {memory:.1f} GiB; found "
        f"{model.n_components_} components of {rank}; "
        f"{loss:.3f} dB under the oracle"
    )
    for side, network in (("row", data.row), ("col", data.col)):
        upper = sp.triu(getattr(model, f"{side}_precision_"), k=1, format="coo")
        found = np.asarray(upper.coords[0], np.int64) * network.size + upper.coords[1]
        true = network.edges()
        hits = len(np.intersect1d(found, true))
        print(
            f"  {side} edges: {len(true)} planted, {hits / max(len(true), 1):.2%} found, "
            f"{1 - hits / max(len(found), 1):.2%} of the {len(found)} found are false"
        )


def rates(options):
    """Measure the rates that the floors use."""
    device, size = options.device, 16384 if options.device == "cuda" else 1024
    square = torch.randn((size, size), device=device)
    double = square[: size // 2, : size // 2].double()
    results = {
        "float32 product, TFLOP/s": 2 * size**3 / _seconds(lambda: square @ square, device) / 1e12,
        "float64 product, TFLOP/s": size**3 / 4 / _seconds(lambda: double @ double, device) / 1e12,
        "copy, TB/s": 2 * 4 * size**2 / _seconds(lambda: square.clone(), device) / 1e12,
    }
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    results["TF32 product, TFLOP/s"] = (
        2 * size**3 / _seconds(lambda: square @ square, device) / 1e12
    )
    torch.set_float32_matmul_precision(before)
    for name, value in results.items():
        print(f"{name}: {value:.1f}")


def _seconds(call, device, repeats=5):
    call()
    _wait(device)
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    _wait(device)
    return (time.perf_counter() - start) / repeats


def _wait(device):
    if device == "cuda":
        torch.cuda.synchronize()
