"""How well and how fast the Wasserstein algorithms work.

    python benchmarks/wasserstein.py recovery                # PSNR on the paper's small data
    python benchmarks/wasserstein.py speed                   # 300 x 200, both methods
    python benchmarks/wasserstein.py reference FOLDER        # beside the authors' program
    python benchmarks/wasserstein.py original                # the paper's w2*, gradient method

Set OMP_NUM_THREADS=1 for seconds on one core. Recovery is reported on seeds that no setting was
chosen on; data are not centered, as in the paper.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mnpca import WassersteinMNPCA
from mnpca.datasets import make_paper_small
from mnpca.metrics import edge_recovery, psnr

CONDITIONS = (8, 32, 96, 224)


def timed_fit(Y, **params):
    model = WassersteinMNPCA(2, center=False, **params)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(Y)
    return model, time.perf_counter() - wall, time.process_time() - cpu


def recovery(seeds):
    print("   c   PSNR (dB)        iterations  converged  CPU s (max)   recall, precision of edges")
    for c in CONDITIONS:
        rows = []
        for seed in seeds:
            data = make_paper_small(c, seed)
            model, _, cpu = timed_fit(data.Y)
            edges = [
                edge_recovery(model.row_precision_, data.row_precision),
                edge_recovery(model.col_precision_, data.col_precision),
            ]
            found = [value for side in edges for value in (side.tpr, side.ppv)]
            quality = psnr(model.denoise(), data.signal)
            rows.append([quality, model.n_iter_, model.converged_, cpu, *found])
        mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0)
        print(
            f"{c:4d}  {mean[0]:6.2f} +- {spread[0]:4.2f}  {mean[1]:10.0f}  {mean[2]:8.0%}  "
            f"{mean[3]:6.2f} ({max(row[3] for row in rows):.2f})   rows {mean[4]:.2f} "
            f"{mean[5]:.2f}, columns {mean[6]:.2f} {mean[7]:.2f}",
            flush=True,
        )


def speed():
    timed_fit(make_paper_small(8, 0).Y[:50, :40])  # loads the compiled parts
    print("method     c   iterations  converged  wall s  CPU s")
    for c in CONDITIONS:
        model, wall, cpu = timed_fit(make_paper_small(c, 1000).Y)
        print(
            f"convex   {c:4d}  {model.n_iter_:6d}  {model.converged_!s:>9}  {wall:6.2f} {cpu:6.2f}"
        )
    model, wall, cpu = timed_fit(make_paper_small(32, 1000).Y, method="gradient")
    print(f"gradient   32  {model.n_iter_:6d}  {model.converged_!s:>9}  {wall:6.2f} {cpu:6.2f}")


def reference(folder):
    print("file      authors  gradient  agreement  convex (dB)   CPU s: authors gradient convex")
    for path in sorted(Path(folder).glob("c*_s*.npz")):
        stored = np.load(path)
        authors = psnr(stored["w2_lowrank"], stored["signal"])
        gradient, _, slow = timed_fit(stored["Y"], method="gradient")
        convex, _, fast = timed_fit(stored["Y"])
        print(
            f"{path.stem:8}  {authors:7.2f}  {psnr(gradient.denoise(), stored['signal']):8.2f}  "
            f"{psnr(gradient.denoise(), stored['w2_lowrank']):9.1f}  "
            f"{psnr(convex.denoise(), stored['signal']):6.2f}   "
            f"{float(stored['w2_cpu_seconds']):16.1f} {slow:8.1f} {fast:6.2f}",
            flush=True,
        )


def original(seeds=range(1000, 1003)):
    print("   c   PSNR (dB)       objective at start and end")
    for c in CONDITIONS:
        rows = []
        for seed in seeds:
            data = make_paper_small(c, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model, _, _ = timed_fit(data.Y, method="gradient", objective="original")
            history = model.objective_history_
            rows.append([psnr(model.denoise(), data.signal), history[0], history[-1]])
        mean = np.mean(rows, axis=0)
        print(
            f"{c:4d}  {mean[0]:6.2f} +- {np.std(rows, axis=0)[0]:4.2f}  {mean[1]:.1f} {mean[2]:.1f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["recovery", "speed", "reference", "original"])
    parser.add_argument("folder", nargs="?", default="../shared/reference")
    parser.add_argument("--first-seed", type=int, default=1000, help="of the recovery table")
    arguments = parser.parse_args()
    if arguments.what == "recovery":
        recovery(range(arguments.first_seed, arguments.first_seed + 10))
    elif arguments.what == "reference":
        reference(arguments.folder)
    else:
        {"speed": speed, "original": original}[arguments.what]()
