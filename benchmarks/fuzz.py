"""Seeded fuzzing of the model loader, resumed fits and the data readers, with counts.

    python benchmarks/fuzz.py --models 2000 --checkpoints 2000 --tables 2000 --seed 1000

Every try alters a good file in one of the ways of `fuzz_models.py`, `fuzz_checkpoints.py` or
`fuzz_tables.py` and hands it to a child process, so that a crash or a hang is seen and counted. A
try is good if the file is read or refused with the documented error within five seconds, and if no
file appears beside it.
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
import fuzz_checkpoints
import fuzz_models
import fuzz_tables

ADDRESS_SPACE = 8 * 2**30
SUBJECTS = {"models": fuzz_models, "checkpoints": fuzz_checkpoints, "tables": fuzz_tables}


def serve(connection, subject, folder):
    """In the child: read the files whose names arrive, answer what happened."""
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    read = SUBJECTS[subject].read
    connection.send("ready")
    while (path := connection.recv()) is not None:
        begin = time.process_time()
        try:
            outcome = read(path)
        except Exception as error:
            outcome = f"unexpected {type(error).__name__}: {error}"[:300]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        connection.send((outcome, peak, time.process_time() - begin))


class Child:
    """A process that reads files, replaced after a crash or a hang."""

    def __init__(self, subject, folder, seconds):
        self._arguments = (subject, folder)
        self._seconds = seconds
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()
        self._connection.recv()

    def read(self, path):
        """Return (outcome, peak memory in MB, seconds of processor time)."""
        self._connection.send(str(path))
        silence = ("hang", 0.0, np.inf)
        try:
            # On a busy machine, much longer than the processor time that is allowed.
            answered = self._connection.poll(20 * self._seconds)
            outcome, peak, seconds = self._connection.recv() if answered else silence
        except EOFError:
            outcome, peak, seconds = "crash", 0.0, 0.0
        if seconds > self._seconds:
            outcome = "hang"
        if outcome in ("hang", "crash"):
            self._process.kill()
            self._process.join()
            self._start()
        return outcome, peak, seconds

    def stop(self):
        """End the process."""
        self._connection.send(None)
        self._process.join()


def fuzz(subject, tries, seed, *, seconds, keep=None):
    """Try `tries` altered files; return counts, the slowest try, peak memory and failures."""
    module = SUBJECTS[subject]
    outcomes, by_way, failures = Counter(), Counter(), []
    slowest, peak_memory = 0.0, 0.0
    with tempfile.TemporaryDirectory(prefix="mnpca-fuzz-") as scratch:
        home, scratch_files = Path(scratch, "home"), Path(scratch, "tmp")
        home.mkdir()
        scratch_files.mkdir()
        os.environ["TMPDIR"] = str(scratch_files)
        corpus = module.corpus(np.random.default_rng(seed), Path(scratch))
        child = Child(subject, home, seconds)
        for number in range(tries):
            rng = np.random.default_rng([seed, number])
            way, name, data = module.alter(corpus, rng)
            path = Path(home, name)
            path.write_bytes(data)
            outcome, peak, taken = child.read(path)
            slowest, peak_memory = max(slowest, taken), max(peak_memory, peak)
            path.unlink()
            stray = _clear(home) + _clear(scratch_files)
            if stray and outcome in ("read", "refused"):
                outcome = f"stray files {stray}"
            outcomes[outcome.split(":")[0]] += 1
            by_way[way] += 1
            if outcome not in ("read", "refused"):
                failures.append({"number": number, "way": way, "outcome": outcome})
                if keep is not None:
                    Path(keep, f"{number}-{name}").write_bytes(data)
        child.stop()
    return {
        "subject": subject,
        "seed": seed,
        "tries": tries,
        "outcomes": dict(outcomes),
        "ways": dict(sorted(by_way.items())),
        "slowest_seconds": round(slowest, 2),
        "peak_memory_mb": round(peak_memory),
        "failures": failures,
    }


def _clear(folder):
    """Remove whatever lies in a folder that should be empty; return its names."""
    names = []
    for root, folders, files in os.walk(folder, topdown=False):
        for name in files:
            names.append(name)
            os.unlink(os.path.join(root, name))
        for name in folders:
            os.rmdir(os.path.join(root, name))
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for subject in SUBJECTS:
        parser.add_argument(f"--{subject}", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=5.0, help="a longer try is a hang")
    parser.add_argument("--keep", help="folder for the files of failed tries")
    options = parser.parse_args()
    failed = False
    for subject in SUBJECTS:
        tries = getattr(options, subject)
        if tries:
            result = fuzz(subject, tries, options.seed, seconds=options.seconds, keep=options.keep)
            print(json.dumps(result, indent=1))
            failed |= bool(result["failures"])
    sys.exit(failed)


if __name__ == "__main__":
    main()
