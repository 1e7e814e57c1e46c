"""List the source files of mnpca whose functions ``mnpca fit data.csv`` calls.

Run it from a checkout: ``python tools/files_of_fit.py [data.csv]``. Without an argument the table
is a draw of `mnpca.datasets.make_paper_small`. Files that are imported only are not counted.
"""

import inspect
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import mnpca
from mnpca.cli import main

PACKAGE = Path(mnpca.__file__).parent
#: The most files that a reader should have to open.
BAR = 40


def files_of(arguments: list[str]) -> list[str]:
    """Run the command with these arguments and return the files whose functions it calls."""
    files = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        # The bodies of modules and classes, which run on import, are not optimized.
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            files.add(frame.f_code.co_filename)

    sys.argv = ["mnpca", *arguments]
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    paths = (Path(file) for file in files)
    return sorted(str(path.relative_to(PACKAGE)) for path in paths if PACKAGE in path.parents)


def example_table(folder: Path) -> Path:
    """Write a small table with correlated noise and return its path."""
    import numpy as np

    from mnpca.datasets import make_paper_small

    path = folder / "data.csv"
    np.savetxt(path, make_paper_small(seed=0).Y, delimiter=",", fmt="%.6g")
    return path


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = Path(sys.argv[1]) if len(sys.argv) > 1 else example_table(folder)
        found = files_of(["fit", str(data), "--output", str(folder / "result")])
    print("\n".join(found))
    print(f"{len(found)} files (at most {BAR})")
