"""How well and how fast the likelihood algorithm works.

    python benchmarks/likelihood.py recovery                 # PSNR on the paper's small data, BIC
    python benchmarks/likelihood.py large                    # 1000 x 2000: seconds and peak memory
    python benchmarks/likelihood.py reference FOLDER         # beside the authors' program

The seconds beside the authors' program are CPU seconds of choosing the penalties and fitting.

Recovery is reported on seeds that no setting was chosen on.
"""

import argparse
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import scipy.sparse as sp

from mnpca import LikelihoodMNPCA
from mnpca.datasets import make_paper_large, make_paper_small
from mnpca.metrics import psnr
from mnpca.model.low_rank import LowRank
from mnpca.model.objective import Penalty, objective


def recovery(seeds, conditions=(8, 16, 32, 96, 224)):
    print("rule         c     PSNR (dB)       seconds")
    for rule in ("bic", "bic-authors"):
        for c in conditions:
            values, seconds = [], []
            for seed in seeds:
                data = make_paper_small(c, seed)
                model = LikelihoodMNPCA(2, alpha_row=rule, alpha_col=rule, center=False)
                start = time.perf_counter()
                model.fit(data.Y)
                seconds.append(time.perf_counter() - start)
                values.append(psnr(model.denoise(), data.signal))
            print(
                f"{rule:11} {c:4d}  {np.mean(values):6.2f} +- {np.std(values):4.2f}  "
                f"{np.mean(seconds):8.2f}",
                flush=True,
            )


class PeakMemory(threading.Thread):
    """Largest resident memory of this process above what it was, sampled every 5 ms."""

    def __init__(self):
        super().__init__(daemon=True)
        self._process = psutil.Process()
        self._before = self._process.memory_info().rss
        self._running = True
        self.bytes = 0

    def run(self):
        """Sample until the block ends."""
        while self._running:
            self.bytes = max(self.bytes, self._process.memory_info().rss - self._before)
            time.sleep(0.005)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self._running = False
        self.join()


def large(p=2000, seed=1000):
    warm_up = make_paper_small(8, 0, n_samples=60, n_features=40)
    LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3).fit(warm_up.Y)  # compile, start threads
    data = make_paper_large(p, seed)
    model = LikelihoodMNPCA(2, alpha_row=0.5, alpha_col=0.5, center=False)
    with PeakMemory() as peak:
        start = time.perf_counter()
        model.fit(data.Y)
        seconds = time.perf_counter() - start
    print(
        f"1000 x {p}: {seconds:.1f} s, {model.n_iter_} iterations, "
        f"peak memory {peak.bytes / (8 * p**2):.2f} dense p x p arrays, "
        f"PSNR {psnr(model.denoise(), data.signal):.2f} dB"
    )


def reference(folder):
    print("file      objective: theirs    ours  PSNR: theirs  ours  seconds: theirs  ours  ratio")
    warm_up = make_paper_small(8, 0)
    LikelihoodMNPCA(2, alpha_row="bic-authors", alpha_col="bic-authors").fit(warm_up.Y)
    for path in sorted(Path(folder).glob("c*.npz"), key=lambda path: int(path.stem[1:-3])):
        stored = np.load(path)
        data, penalties = stored["Y"], (float(stored["lam1"]), float(stored["lam2"]))
        start = time.process_time()
        LikelihoodMNPCA(2, alpha_row="bic-authors", alpha_col="bic-authors", center=False).fit(data)
        seconds = time.process_time() - start
        model = LikelihoodMNPCA(
            2, alpha_row=penalties[0], alpha_col=penalties[1], ridge=0.01, center=False
        ).fit(data)
        theirs = LowRank(stored["mrl_X"], stored["mrl_W"])
        value = objective(
            data,
            theirs,
            _sparse(stored, "mrl_iA"),
            _sparse(stored, "mrl_iB"),
            Penalty(*penalties, diagonal=True, ridge=0.01),
        )
        their_seconds = float(stored["select_seconds"] + stored["mrl_cpu_seconds"])
        print(
            f"{path.stem:9} {value:18.5f} {model.objective_history_[-1]:7.5f} "
            f"{psnr(theirs.dense(), stored['signal']):13.2f} "
            f"{psnr(model.denoise(), stored['signal']):5.2f} "
            f"{their_seconds:16.1f} {seconds:5.2f} {their_seconds / seconds:6.0f}",
            flush=True,
        )


def _sparse(stored, name):
    parts = [stored[f"{name}_{part}"] for part in ("val", "row", "col", "shape")]
    return sp.csr_array((parts[0], (parts[1], parts[2])), shape=tuple(parts[3]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("recovery").add_argument("--first-seed", type=int, default=1000)
    commands.add_parser("large").add_argument("--p", type=int, default=2000)
    commands.add_parser("reference").add_argument("folder")
    arguments = parser.parse_args()
    if arguments.command == "recovery":
        recovery(range(arguments.first_seed, arguments.first_seed + 10))
    elif arguments.command == "large":
        large(arguments.p)
    else:
        reference(arguments.folder)


if __name__ == "__main__":
    main()
