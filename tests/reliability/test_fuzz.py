"""A short run of the fuzzers; benchmarks/fuzz.py makes the long one."""

import json
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


def test_altered_files_never_crash_hang_or_litter():
    # A minute rather than the benchmark's five seconds: a busy machine is no hang.
    command = [sys.executable, str(FUZZ), "--models", "100", "--tables", "100", "--seed", "7"]
    command += ["--seconds", "60"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.JSONDecoder()
    first, end = results.raw_decode(done.stdout)
    second, _ = results.raw_decode(done.stdout[end:].lstrip())
    for result in (first, second):
        assert sum(result["outcomes"].values()) == 100
        assert result["outcomes"]["refused"] > 50
        assert result["peak_memory_mb"] < 2000
