"""``python -m reproduction``: the paper's tables and figures."""

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console

from reproduction.catalog import EXPERIMENTS
from reproduction.reproduce import reproduce
from reproduction.store import ResultsError

_DESCRIPTION = """Compute a table or figure of the paper and print it beside the paper's figures.

Every finished cell (data, method, seed) is kept in OUT/results.csv at once; an interrupted run goes
on where it stopped. Delete the folder to start afresh."""


def _number_of_workers(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return int(text)


def main(arguments=None):
    """Run the command; return its exit code.

    0: done. 1: a cell failed. 2: wrong input or usage. 130: interrupted.
    """
    parser = argparse.ArgumentParser(
        "python -m reproduction",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    targets = (*EXPERIMENTS, "all")
    parser.add_argument(
        "target", choices=targets, metavar="TARGET", help=f"one of {', '.join(targets)}"
    )
    parser.add_argument(
        "--output",
        "-o",
        metavar="OUT",
        type=Path,
        default=Path("results"),
        help="folder for results; a second run resumes (default: results)",
    )
    parser.add_argument("--quick", action="store_true", help="a few minutes' version")
    parser.add_argument(
        "--jobs",
        "-j",
        metavar="N",
        type=_number_of_workers,
        default=1,
        help="worker processes (default: 1)",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        type=Path,
        help="folder with the real data sets (default: the environment variable MNPCA_DATA)",
    )
    parser.add_argument(
        "--all-methods", action="store_true", help="also the Wasserstein gradient methods"
    )
    options = parser.parse_args(arguments)
    if options.data is not None:
        # The workers find the folder in their environment.
        os.environ["MNPCA_DATA"] = str(options.data.resolve())
    try:
        failed = reproduce(
            options.target,
            options.output,
            quick=options.quick,
            jobs=options.jobs,
            all_methods=options.all_methods,
            console=Console(),
        )
    except (ResultsError, OSError) as error:
        return _stopped(f"error: {error}", 2)
    except KeyboardInterrupt:
        return _stopped("interrupted; run the same command again to go on.", 130)
    return 1 if failed else 0


def _stopped(message, code):
    print(f"reproduction: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
