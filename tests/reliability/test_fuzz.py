"""A short run of the fuzzers; benchmarks/fuzz.py makes the long one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


SUBJECTS = ("models", "checkpoints", "tables")


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
def test_altered_files_never_crash_hang_or_litter(subject):
    # A minute rather than the benchmark's five seconds: a busy machine is no hang.
    command = [sys.executable, str(FUZZ), "--seed", "7", "--seconds", "60"]
    for each in SUBJECTS:
        command += [f"--{each}", "50" if each == subject else "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert sum(result["outcomes"].values()) == 50
    assert result["outcomes"]["refused"] > 25
    assert result["peak_memory_mb"] < 2000
