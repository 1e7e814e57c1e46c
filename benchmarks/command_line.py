"""From a CSV to the report on the command line: seconds, peak memory, size of the report.

    python benchmarks/command_line.py [--rows 2000] [--columns 1000]

Writes a table of synthetic data (three groups in correlated noise), runs ``mnpca fit`` on it as a
program, and prints what it took.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from mnpca.datasets import make_paper_small


def write_table(path, n_rows, n_columns, condition):
    data = make_paper_small(
        c=condition, seed=1000, n_samples=n_rows, n_features=n_columns, density=0.005
    )
    frame = pd.DataFrame(
        data.Y,
        index=[f"sample {i}" for i in range(n_rows)],
        columns=[f"gene {j}" for j in range(n_columns)],
    )
    frame.assign(group=data.labels).to_csv(path)


def run(path, out):
    """Run the command; return its summary, seconds and peak memory in bytes."""
    command = [sys.executable, "-m", "mnpca", "fit", str(path), "--labels", "group", "--json"]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "-o", str(out)], stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        raise SystemExit("mnpca fit failed")
    return json.loads(output), seconds, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--condition", type=float, default=32.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "data.csv", Path(folder) / "out"
        write_table(table, options.rows, options.columns, options.condition)
        summary, seconds, memory = run(table, out)
        size = table.stat().st_size / 1e6
        print(f"table               {options.rows} x {options.columns}, {size:.0f} MB")
        print(f"components          {summary['n_components']}")
        print(f"edges               {summary['row_edges']} rows, {summary['col_edges']} columns")
        print(f"fit alone           {summary['seconds']:.1f} s")
        print(f"CSV to report       {seconds:.1f} s")
        print(f"peak memory         {memory / 1e9:.2f} GB")
        print(f"report              {(out / 'report.html').stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
