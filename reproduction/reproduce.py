"""From the name of a table or figure to its files."""

from reproduction.catalog import EXPERIMENTS, compute
from reproduction.real import why_missing
from reproduction.runner import run
from reproduction.store import ResultStore


def reproduce(target, folder, *, quick=False, jobs=1, all_methods=False, console):
    """Compute what is missing of a table or figure, then show and write it.

    Parameters
    ----------
    target : str
        A name in `EXPERIMENTS`, or "all".
    folder : path
        Where results are kept.
    quick : bool, default=False
        Fewer data sets and seeds.
    jobs : int, default=1
        Worker processes.
    all_methods : bool, default=False
        Also the slow methods.
    console : rich.console.Console
        Where everything is printed.

    Returns
    -------
    dict
        The error message of every cell that failed.
    """
    store = ResultStore(folder)
    failed = {}
    for name in EXPERIMENTS if target == "all" else [target]:
        experiment = EXPERIMENTS[name]
        console.rule(f"{name}: {experiment.title}")
        cells = experiment.cells(quick, all_methods)
        if experiment.needs_data:
            cells = _with_data(cells, name, target, console)
        failed |= run(cells, compute, store, jobs=jobs, console=console)
        if any(cell in store for cell in cells):
            experiment.present(store, cells, console)
    for cell, message in failed.items():
        console.print(f"failed: {' '.join(map(str, cell))}: {message}", highlight=False)
    console.print(f"results: {store.path}", highlight=False)
    return failed


def _with_data(cells, name, target, console):
    """Leave out cells whose data set is not here; nothing left is an error unless all is wanted."""
    problems = {data: why_missing(data) for data in dict.fromkeys(map(_set_name, cells))}
    kept = [cell for cell in cells if not problems[_set_name(cell)]]
    missing = list(filter(None, problems.values()))
    if not kept and target != "all":
        raise FileNotFoundError(
            f"{name} needs real data (--data FOLDER), and none is here. {missing[0]}"
        )
    for problem in missing:
        console.print(f"left out: {problem}", highlight=False)
    return kept


def _set_name(cell):
    return cell.data.split()[0]
