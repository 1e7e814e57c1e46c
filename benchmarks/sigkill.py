"""Kill `mnpca fit --checkpoint` at random moments; every resumed fit must end as if left alone.

    python benchmarks/sigkill.py --kills 200 --seed 1000 --algorithm mnpca

The command runs in a fork of this process (the packages are loaded once), gets SIGKILL at a random
moment, and is run again with `--resume`; it may be killed again and again before it ends. At the
end its model file must equal, byte for byte, that of a run nobody disturbed, and nothing of the
killed runs may be left. After every kill the checkpoint on the disk must be whole.
"""

import argparse
import contextlib
import io
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mnpca.cli import main as mnpca_command
from mnpca.datasets import make_paper_small
from mnpca.persistence import read_document


def start(arguments):
    """Run the command in a fork; return its process number."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            code = mnpca_command(arguments)
        finally:
            os._exit(code)
    return child


def wait(child, seconds):
    """Wait for the process; return its exit code, or None if it still runs."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            return None
        time.sleep(0.002)


class Tally:
    """What happened so far."""

    def __init__(self):
        self.kills = self.kills_with_checkpoint = self.finished = self.equal = 0
        self.damaged, self.litter = [], []

    def inspect(self, checkpoint):
        """Note a kill and check what it left."""
        self.kills += 1
        if checkpoint.exists():
            self.kills_with_checkpoint += 1
            try:
                read_document(checkpoint, "checkpoint")
            except ValueError as error:
                self.damaged.append(str(error))


def run_until_done(command, checkpoint, rng, typical, tally, limit):
    """Kill and resume until the command comes through; return its exit code."""
    while True:
        child = start(command)
        patience = rng.uniform(0, 1.2 * typical) if tally.kills < limit else 600.0
        code = wait(child, patience)
        if code is not None:
            return code
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        tally.inspect(checkpoint)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--algorithm", default="mnpca")
    parser.add_argument("--components", default="2")
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop early after this long")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mnpca-kill-") as folder:
        data, checkpoint = Path(folder, "data.npy"), Path(folder, "fit.ckpt")
        made = make_paper_small(
            c=32, seed=options.seed, n_samples=options.rows, n_features=options.columns
        )
        np.save(data, made.Y)
        common = ["fit", str(data), "--algorithm", options.algorithm, "-k", options.components]

        def command(name, *more):
            return [*common, "-o", str(Path(folder, name)), *more]

        with contextlib.redirect_stdout(io.StringIO()):
            mnpca_command(command("warm", "--json"))
        begin = time.monotonic()
        if wait(start(command("reference")), 600) != 0:
            sys.exit("the undisturbed run failed")
        typical = time.monotonic() - begin
        reference = Path(folder, "reference", "model.mnpca").read_bytes()
        end = time.monotonic() + 60 * options.minutes
        while tally.kills < options.kills and time.monotonic() < end:
            name = f"out{tally.finished}"
            arguments = command(name, "--checkpoint", str(checkpoint), "--resume", "--overwrite")
            code = run_until_done(arguments, checkpoint, rng, typical, tally, options.kills)
            tally.finished += 1
            model = Path(folder, name, "model.mnpca")
            tally.litter += [entry.name for entry in Path(folder).glob(f".{name}-*")]
            tally.equal += code == 0 and model.read_bytes() == reference
            checkpoint.unlink(missing_ok=True)
    result = {**vars(tally), "algorithm": options.algorithm, "seed": options.seed}
    result["seconds_undisturbed"] = round(typical, 2)
    print(json.dumps(result, indent=1))
    sys.exit(bool(tally.damaged or tally.litter) or tally.equal != tally.finished)


if __name__ == "__main__":
    main()
