"""``mnpca reproduce``: the paper's tables and figures."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mnpca.cli._options import Debug, flag


class Target(StrEnum):
    """What can be reproduced."""

    table1 = "table1"
    table2 = "table2"
    table3 = "table3"
    table5 = "table5"
    figure_scatter = "figure-scatter"
    figure_time = "figure-time"
    figure_swiss = "figure-swiss"
    figure_precision = "figure-precision"
    terms = "terms"
    noise = "noise"
    all = "all"


def reproduce(
    target: Annotated[
        Target,
        typer.Argument(metavar="TARGET", help=f"One of {', '.join(Target)}.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Folder for results; a second run resumes."
        ),
    ] = Path("results"),
    quick: Annotated[bool, flag("--quick", help="A few minutes' version.")] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Worker processes.")
    ] = 1,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FOLDER",
            help="Folder with the real data sets (MNPCA_DATA).",
            show_default=False,
        ),
    ] = None,
    all_methods: Annotated[
        bool, flag("--all-methods", help="Also the Wasserstein gradient methods.")
    ] = False,
    debug: Debug = False,
):
    """Compute a table or figure of the paper and print it beside the paper's figures.

    Every finished cell (data, method, seed) is kept in OUT/results.csv at once; an interrupted
    run goes on where it stopped. Delete the folder to start afresh.
    """
    from rich.console import Console

    from mnpca.experiments.reproduction import reproduce as run

    if data is not None:
        # The workers find the folder in their environment.
        os.environ["MNPCA_DATA"] = str(data.resolve())
    failed = run(
        target.value,
        output,
        quick=quick,
        jobs=jobs,
        all_methods=all_methods,
        console=Console(),
    )
    if failed:
        raise typer.Exit(1)
