"""Hostile data files given to `mnpca fit`: exit code, message, time, memory, files left behind.

    python benchmarks/hostile.py

Prints a table. Every file must end in a result or in one line of error, within bounded memory,
with nothing written outside the output folder.
"""

import argparse
import gzip
import io
import os
import resource
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

MEGABYTE = 2**20


def one_line(path):
    """Write 1 GB of one line."""
    with open(path, "wb") as file:
        for _ in range(1024):
            file.write(b"1," * (MEGABYTE // 2))


def one_word(path):
    """Write 1 GB without a separator."""
    with open(path, "wb") as file:
        for _ in range(1024):
            file.write(b"x" * MEGABYTE)


def many_columns(path):
    """Write 100,000 columns."""
    line = b",".join([b"0.5"] * 100_000) + b"\n"
    path.write_bytes(line * 20)


def junk(path):
    """Write 5 MB of random bytes."""
    path.write_bytes(np.random.default_rng(1000).bytes(5 * MEGABYTE))


def matrix(names, rows, path):
    """Write a plain table with the given names."""
    rng = np.random.default_rng(1000)
    lines = [",".join(["id", *names])]
    lines += [",".join([row, *(f"{v:.4f}" for v in rng.normal(size=len(names)))]) for row in rows]
    path.write_text("\n".join(lines))


def formulas(path):
    """Name rows and columns like spreadsheet formulas."""
    names = ["=1+1", "+1+1", "-1+1", "@SUM(A1:A9)", "=HYPERLINK(1)", "plain"]
    matrix(names, [f"=cmd|'/C calc'!A{i}" for i in range(30)], path)


def traversal(path):
    """Name rows and columns like paths."""
    names = ["../../escaped", "/escaped", "..\\escaped", "a/b", "~", "con"]
    matrix(names, [f"../../../escaped{i}" for i in range(30)], path)


def gzip_bomb(path):
    """Write 10 MB that unzip to 10 GB."""
    zeros = gzip.compress(b"0,0,0,0\n" * (128 * 1024))
    path.write_bytes(zeros * 10240)


def npz_bomb(path):
    """Write an archive whose matrix unzips to 8 GB."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2**15, 2**15)}
    )
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w", force_zip64=True) as member,
    ):
        member.write(header.getvalue())
        for _ in range(8192):
            member.write(bytes(MEGABYTE))


FILES = {
    "1 GB of one line of numbers": ("a.csv", one_line),
    "1 GB of one word": ("a.csv", one_word),
    "100,000 columns": ("a.csv", many_columns),
    "binary junk": ("a.csv", junk),
    "names that are formulas": ("a.csv", formulas),
    "names that are paths": ("a.csv", traversal),
    "gzip bomb (10 GB)": ("a.csv.gz", gzip_bomb),
    "zip bomb (8 GB)": ("a.npz", npz_bomb),
}


def run(path, out):
    """Run the command; return exit code, first line of its message, seconds, peak MB."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "mnpca", "fit", str(path), "-k", "1", "-o", str(out), "--json"]
    pid = os.fork()
    if pid == 0:
        with open(path.parent / "messages", "wb") as messages:
            os.dup2(messages.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(sys.executable, command)
    _, status, usage = os.wait4(pid, 0)
    lines = (path.parent / "messages").read_text().strip().splitlines()
    message = lines[-1] if lines else "fitted"
    seconds = time.perf_counter() - begin
    return os.waitstatus_to_exitcode(status), message, seconds, usage.ru_maxrss / 1024


def unsafe_cells(folder):
    """Count cells of written CSV files that a spreadsheet would run."""
    import csv

    count = 0
    for path in folder.rglob("*.csv"):
        with open(path, newline="") as file:
            for row in csv.reader(file):
                for cell in row:
                    try:
                        float(cell)
                    except ValueError:
                        count += cell[:1] in ("=", "+", "-", "@", "\t", "\r")
    return count


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("| file | exit | seconds | peak MB | strays | formulas | message |")
    print("|---|---|---|---|---|---|---|")
    for title, (name, write) in FILES.items():
        with tempfile.TemporaryDirectory(prefix="mnpca-hostile-") as scratch:
            home = Path(scratch, "one", "two", "three")
            home.mkdir(parents=True)
            write(home / name)
            os.environ["TMPDIR"] = str(home)
            code, message, seconds, peak = run(home / name, home / "out")
            known = {home / name, home / "messages"}
            strays = [
                path
                for path in Path(scratch).rglob("*")
                if path.is_file() and path not in known and home / "out" not in path.parents
            ]
            formulas_left = unsafe_cells(home / "out")
            print(
                f"| {title} | {code} | {seconds:.1f} | {peak:.0f} | {len(strays)} | "
                f"{formulas_left} | {message[:110]} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
