"""Absolute times on a GPU, with the floor of each beside it.

    python benchmarks/gpu.py mnpca-wide                  # MNPCA on 1000 x 6000
    python benchmarks/gpu.py mnpca-tall                  # MNPCA on 1,000,000 x 2000, planted truth
    python benchmarks/gpu.py mnpca-tall --rows 300000 --rank 20
    python benchmarks/gpu.py precision                   # sparse_precision at 2000 and 6000
    python benchmarks/gpu.py wasserstein                 # the paper's schedule, 1000 x 2000, 6000
    python benchmarks/gpu.py likelihood                  # LikelihoodMNPCA on 1000 x 6000
    python benchmarks/gpu.py rates                       # what the floors are made of

Data are drawn on the device from seeds that no rule was tuned on. `--device cpu` runs the same on
the processor. Floors count the operations and bytes that cannot be avoided, at the rates that
`rates` measures on an H200: float32 products 48, TF32 products 220 TFLOP/s (in tiles that are
searched), memory 4 TB/s.
"""

import argparse

import gpu_mnpca
import gpu_solvers

COMMANDS = {
    "rates": gpu_mnpca.rates,
    "mnpca-wide": gpu_mnpca.wide,
    "mnpca-tall": gpu_mnpca.tall,
    "precision": gpu_solvers.precision,
    "wasserstein": gpu_solvers.wasserstein,
    "likelihood": gpu_solvers.likelihood,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--rank", type=int, default=3, help="of the planted signal")
    parser.add_argument("--components", default="both", choices=["fixed", "auto", "both"])
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--hard", action="store_true", help="the hardest precision too")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    COMMANDS[options.command](options)


if __name__ == "__main__":
    main()
