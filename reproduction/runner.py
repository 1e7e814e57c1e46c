"""Running cells: what is finished stays, the rest goes to the workers."""

import time
from contextlib import contextmanager

from joblib import Parallel, delayed


def run(cells, compute, store, *, jobs=1, console=None):
    """Compute the cells that the store lacks.

    Parameters
    ----------
    cells : iterable of Cell
        What is wanted; repeated cells are computed once.
    compute : callable
        Takes a cell, returns its Outcome. Must be importable by the workers.
    store : ResultStore
        Where results are kept, each as soon as it is there.
    jobs : int, default=1
        Worker processes; 1 computes in this one.
    console : rich.console.Console, default=None
        Where the progress bar with the time left is shown; None shows nothing.

    Returns
    -------
    dict
        The error message of every cell that failed. Failed cells are not stored, so that the
        next run tries them again.
    """
    wanted = list(dict.fromkeys(cells))
    missing = [cell for cell in wanted if cell not in store]
    failed = {}
    with _progress(console, len(wanted), len(wanted) - len(missing)) as advance:
        tasks = (delayed(_attempt)(compute, cell) for cell in missing)
        for cell, outcome, seconds, error in Parallel(
            n_jobs=jobs, return_as="generator_unordered", pre_dispatch=2 * max(jobs, 1)
        )(tasks):
            if error:
                failed[cell] = error
            else:
                store.add(cell, outcome, seconds)
            advance(cell)
    return failed


def _attempt(compute, cell):
    start = time.perf_counter()
    try:
        outcome, error = compute(cell), ""
    except Exception as problem:  # one bad cell must not lose an hour of others
        outcome, error = None, f"{type(problem).__name__}: {problem}"
    return cell, outcome, time.perf_counter() - start, error


@contextmanager
def _progress(console, total, done):
    """Give a function that marks one cell as done, and show the bar if there is a console."""
    if console is None:
        yield lambda cell: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("cells", total=total, completed=done)

        def advance(cell):
            bar.update(task, advance=1, description=f"{cell.data} {cell.method}"[:40])

        yield advance
