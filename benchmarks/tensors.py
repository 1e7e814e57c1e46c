"""Several matrices, tensors and dimension folding: recovery, limits and time.

    python benchmarks/tensors.py --seeds 1000 1001 1002 1003 1004
    python benchmarks/tensors.py --only time

Every figure is printed with the level it is held to, where there is one.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.stats import norm

from mnpca import (
    MNPCA,
    DimensionFoldingPCA,
    GeneralizedPCA,
    LikelihoodMNPCA,
    TensorMNPCA,
)
from mnpca.datasets import (
    chain_precision,
    make_paper_small,
    make_several_matrices,
    make_tensor_normal,
)
from mnpca.metrics import edge_recovery, psnr
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.tensor.tucker import tucker


def f1(edges, truth):
    """F1 of a set of edges; all edges of the truth count."""
    return edge_recovery(np.asarray(edges, dtype=float), truth).f1


def flip_flop(seeds):
    print("\nMaximum likelihood, 30 matrices of 20 x 15, against the flip-flop algorithm (1e-6)")
    for seed in seeds:
        Y = make_several_matrices(30, 20, 15, 0, random_state=seed).Y
        model = LikelihoodMNPCA(0, alpha_row=0, alpha_col=0, center=False, tol=1e-13).fit(Y)
        A, B = np.eye(20), np.eye(15)
        for _ in range(100):
            A = np.linalg.inv(sum(y @ B @ y.T for y in Y) / (30 * 15))
            B = np.linalg.inv(sum(y.T @ A @ y for y in Y) / (30 * 20))
        scale = np.exp(np.linalg.slogdet(A)[1] / 20)
        row = np.abs(model.row_precision_.toarray() - A / scale).max()
        col = np.abs(model.col_precision_.toarray() - B * scale).max()
        print(f"  seed {seed}: largest difference {row:.1e} (rows), {col:.1e} (columns)")


def averaged(precisions, truth):
    """F1 of four ways to read edges from the average of separate estimates."""
    precisions = np.stack([precision.toarray() for precision in precisions])
    scale = 1 / np.sqrt(np.einsum("aii->ai", precisions))
    partial = precisions * scale[:, :, None] * scale[:, None, :]
    mean, size = partial.mean(axis=0), len(truth.toarray())
    mean[np.diag_indices(size)] = 0.0
    error = partial.std(axis=0, ddof=1) / np.sqrt(len(partial))
    level = norm.isf(0.025 / (size * (size - 1) / 2))
    return {
        "any": f1(mean != 0, truth),
        "half": f1(np.mean(partial != 0, axis=0) >= 0.5, truth),
        "tested": f1((np.abs(mean) > level * error) & (mean != 0), truth),
        "best threshold": max(f1(np.abs(mean) > t, truth) for t in np.unique(np.abs(mean))),
    }


def networks(seeds):
    print("\nEdges of 30 matrices of 20 x 15 (F1; 0.15 above the average of separate fits)")
    print("  an edge of the average: not zero / in half of the fits / significant at 5% / at the")
    print("  threshold that is best for the truth, which no rule can know")
    for rank in (0, 2):
        rows = {}
        for seed in seeds:
            data = make_several_matrices(30, 20, 15, rank, random_state=seed)
            likelihood = LikelihoodMNPCA(rank, center=False)
            separate = [LikelihoodMNPCA(rank, center=False).fit(y) for y in data.Y]
            joint = {"MNPCA": MNPCA(rank, noise="graph"), "LikelihoodMNPCA": likelihood}
            for side in ("row", "col"):
                truth, name = data[f"{side}_precision"], f"{side}_precision_"
                for label, model in joint.items():
                    edges = getattr(model.fit(data.Y), name).toarray() != 0
                    rows.setdefault((side, f"together, {label}"), []).append(f1(edges, truth))
                found = averaged([getattr(model, name) for model in separate], truth)
                for label, value in found.items():
                    rows.setdefault((side, f"average, {label}"), []).append(value)
        for (side, label), values in sorted(rows.items(), reverse=True):
            lowest = f"(lowest {min(values):.3f})"
            print(f"  rank {rank}, {side}: {label:28} {np.mean(values):.3f} {lowest}")


KINDS = {"random networks": None, "chains, 0.5": 0.5, "chains, 0.8": 0.8}


def tensors(seeds):
    print(
        "\nTensor 40 x 30 x 20, rank 2 (F1 of each axis above 0.8; at most 0.5 dB under the oracle)"
    )
    shape = (40, 30, 20)
    for kind, correlation in KINDS.items():
        for scale in (1.0, 0.7):
            figures = []
            for seed in seeds:
                chains = None
                if correlation is not None:
                    chains = [chain_precision(size, correlation) for size in shape]
                data = make_tensor_normal(
                    shape, 2, precisions=chains, signal_scale=scale, random_state=seed
                )
                model = TensorMNPCA(2).fit(data.Y)
                noise = [AxisPrecision.from_precision(P) for P in data.precisions]
                oracle = psnr(tucker(data.Y, (2, 2, 2), noise).dense(), data.signal)
                white = [AxisPrecision.diagonal(np.ones(size)) for size in shape]
                plain = psnr(tucker(data.Y, (2, 2, 2), white).dense(), data.signal)
                pairs = zip(model.precisions_, data.precisions, strict=True)
                scores = [f1(found.toarray() != 0, truth) for found, truth in pairs]
                figures.append([*scores, psnr(model.denoise(), data.signal), oracle, plain])
            mean = np.mean(figures, axis=0)
            lowest = np.min(figures, axis=0)
            gap = max(oracle - own for *_, own, oracle, _ in figures)
            print(
                f"  {kind}, signal x {scale}: F1 {mean[0]:.3f} {mean[1]:.3f} {mean[2]:.3f} (lowest "
                f"{lowest[0]:.3f} {lowest[1]:.3f} {lowest[2]:.3f}); {mean[3]:.2f} dB, oracle "
                f"{mean[4]:.2f}, Tucker {mean[5]:.2f}; largest gap {gap:.2f}"
            )


def matrices(seeds):
    print("\nTwo axes: TensorMNPCA against MNPCA (1e-8)")
    for seed in seeds:
        Y = make_paper_small(c=32, seed=seed).Y
        tensor, matrix = TensorMNPCA(2).fit(Y), MNPCA(2, noise="graph", center=False).fit(Y)
        differences = [
            np.abs(tensor.denoise() - matrix.denoise()).max(),
            np.abs(tensor.precisions_[0] - matrix.row_precision_).max(),
            np.abs(tensor.precisions_[1] - matrix.col_precision_).max(),
            np.abs(tensor.transform(Y) - matrix.transform(Y)).max(),
        ]
        print(f"  seed {seed}: largest difference {max(differences):.1e}")


def folding(seeds):
    print("\nDimension folding, 60 matrices of 20 x 15 with a mean, signal 2 x 2 (PSNR in dB, F1)")
    for seed in seeds:
        rng = np.random.RandomState(seed)
        data = make_tensor_normal((60, 20, 15), (4, 2, 2), random_state=rng)
        replicates = [chain_precision(60, 0.0), *data.precisions[1:]]
        data = make_tensor_normal((60, 20, 15), (4, 2, 2), precisions=replicates, random_state=rng)
        mean = rng.standard_normal((20, 15))
        Y, truth = data.Y + mean, data.signal + mean
        models = {
            noise: DimensionFoldingPCA(2, 2, noise=noise).fit(Y) for noise in ("graph", "identity")
        }
        graph = models["graph"]
        rows = f1(graph.row_precision_.toarray() != 0, data.precisions[1])
        cols = f1(graph.col_precision_.toarray() != 0, data.precisions[2])
        print(
            f"  seed {seed}: {psnr(graph.denoise(), truth):.2f} dB, GLRAM "
            f"{psnr(models['identity'].denoise(), truth):.2f}; F1 {rows:.3f} {cols:.3f}"
        )


def signals(seeds):
    print("\nSignal of 30 matrices of 20 x 15, rank 2 (PSNR in dB)")
    for seed in seeds:
        data = make_several_matrices(30, 20, 15, 2, random_state=seed)
        plain = GeneralizedPCA(2, center=False).fit(data.Y.reshape(-1, 15)).denoise()
        model = MNPCA(2, noise="graph", center=False).fit(data.Y)
        separate = [MNPCA(2, noise="graph", center=False).fit(y).denoise() for y in data.Y]
        print(
            f"  seed {seed}: together {psnr(model.denoise(), data.signal):.2f}, each alone "
            f"{psnr(np.stack(separate), data.signal):.2f}, PCA of all rows "
            f"{psnr(plain.reshape(data.Y.shape), data.signal):.2f}"
        )


def timing(seeds):
    print("\nTime of 100 x 60 x 40 (at most 10 s)")
    several = make_several_matrices(100, 60, 40, 2, random_state=seeds[0]).Y
    tensor = make_tensor_normal((100, 60, 40), 2, random_state=seeds[0]).Y
    MNPCA().fit(several[:3])  # compile
    LikelihoodMNPCA().fit(several[:3])
    for model, Y in (
        (MNPCA(), several),
        (MNPCA(2, noise="graph"), several),
        (LikelihoodMNPCA(2), several),
        (DimensionFoldingPCA(2, 2), tensor),
        (TensorMNPCA(2), tensor),
    ):
        start, used = time.perf_counter(), time.process_time()
        model.fit(Y)
        wall, cpu = time.perf_counter() - start, time.process_time() - used
        print(f"  {model!r}: {wall:.2f} s ({cpu:.2f} s of processor time)")


PARTS = {
    "flip-flop": flip_flop,
    "networks": networks,
    "signals": signals,
    "tensors": tensors,
    "matrices": matrices,
    "folding": folding,
    "time": timing,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1000, 1001, 1002, 1003, 1004])
    parser.add_argument("--only", choices=PARTS, help="one part instead of all")
    arguments = parser.parse_args()
    warnings.simplefilter(
        "ignore"
    )  # single small matrices are too little for a fit, and it says so
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            part(arguments.seeds)
