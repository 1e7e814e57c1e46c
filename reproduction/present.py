"""Turning finished cells into tables in the terminal, CSV files and pictures."""

import numpy as np
import pandas as pd

from reproduction import pictures
from reproduction.recovery import FIRST_SEED
from reproduction.tables import averages, beside_paper, heading, show

RECOVERY = ("psnr", "rmse", "nmi")
EDGES = tuple(f"{side}_{rate}" for side in ("row", "col") for rate in ("tpr", "tnr", "ppv"))


def present_table1(store, cells, console):
    """Recovery of the small data: the paper's own, then fresh draws."""
    _both_draws(store, cells, console, "table1", "Table 1", RECOVERY)


def present_table3(store, cells, console):
    """Recovery of the large data."""
    _table(store, cells, console, "table3", "Table 3", RECOVERY)


def present_noise(store, cells, console):
    """Recovery under other noise; the paper has no such table."""
    _table(store, cells, console, "noise", "Other noise", RECOVERY)


def present_table2(store, cells, console):
    """Edges of the networks: the paper's own data, then fresh draws."""
    _both_draws(store, cells, console, "table2", "Table 2", EDGES)


def present_real(store, cells, console):
    """Accuracies by the paper's protocol beside its figures, then by the nested one."""
    paper = [cell for cell in cells if cell.experiment == "real-paper"]
    nested = [cell for cell in cells if cell.experiment == "real-nested"]
    _table(
        store,
        paper,
        console,
        "table5",
        "Table 5, the paper's protocol",
        ("accuracy", "accuracy_largest", "rank", "seconds"),
        shown=("accuracy",),
        digits=1,
    )
    ours = averages(store, nested, ("accuracy",))
    ours.to_csv(store.folder / "table5-nested.csv", index=False)
    show(console, ours, "accuracy", "Table 5, nested protocol", digits=1)


def present_scatter(store, cells, console):
    """Projections at two condition numbers."""
    panels = {}
    for cell in _finished(store, cells):
        arrays = store.arrays(cell)
        panel = (cell.method, arrays["scores"], arrays["labels"])
        panels.setdefault(cell.data, []).append(panel)
    _picture(store, console, "figure-scatter.png", pictures.save_scatter, panels)


def present_swiss(store, cells, console):
    """Draw the rolls and their projections, and tell how well these separate them."""
    metrics = ("nmi", "neighbors")
    _table(
        store, cells, console, "swiss", "Swiss rolls", metrics, file_name="figure-swiss", digits=1
    )
    rows = {}
    for cell in _finished(store, cells):
        if cell.seed != FIRST_SEED:
            continue
        arrays = store.arrays(cell)
        _, panels = rows.setdefault(cell.data, (arrays["points"], []))
        panels.append((cell.method, arrays["scores"], arrays["labels"]))
    _picture(store, console, "figure-swiss.png", pictures.save_swiss, rows)


def present_times(store, cells, console):
    """Seconds against size and penalty."""
    _table(store, cells, console, "time", "Seconds", ("fit_seconds",), file_name="figure-time")
    by_size, by_penalty = {}, {}
    for cell in _finished(store, cells):
        seconds = store.metrics(cell)["fit_seconds"]
        size, *penalty = cell.data.split()
        if penalty:
            x = float(penalty[0].removeprefix("alpha="))
            by_penalty.setdefault(cell.method, []).append((x, seconds))
        else:
            by_size.setdefault(cell.method, []).append((int(size[2:]), seconds))
    _picture(store, console, "figure-time.png", pictures.save_times, by_size, by_penalty)


def present_networks(store, cells, console):
    """Draw the strongest edges among patients, ordered by subtype."""
    _table(
        store,
        cells,
        console,
        "networks",
        "Patients",
        ("edges", "within_class", "within_class_by_chance"),
        file_name="figure-precision",
    )
    panels = []
    for cell in _finished(store, cells):
        arrays = store.arrays(cell)
        panels.append((heading(cell.method), arrays["i"], arrays["j"], arrays["names"]))
    _picture(store, console, "figure-precision.png", pictures.save_networks, panels)


def present_terms(store, cells, console):
    """Write the strongest pairs of terms of each method and what they share."""
    pairs = {cell.method: term_pairs(store, cell) for cell in _finished(store, cells)}
    frame = pd.DataFrame(
        [(m, rank, pair) for m, list_ in pairs.items() for rank, pair in enumerate(list_, 1)],
        columns=["method", "rank", "pair"],
    )
    frame.to_csv(store.folder / "terms.csv", index=False)
    plain = set(pairs.get("SparsePrecision", [])[:20])
    for cell in _finished(store, cells):
        top = pairs[cell.method][:20]
        shared = sum(pair in plain for pair in top)
        edges = store.metrics(cell)["edges"]
        console.print(
            f"{heading(cell.method)}: {edges:.0f} edges, {shared} of the strongest {len(top)} "
            f"shared with plain graphical lasso: {', '.join(top)}",
            highlight=False,
        )


def term_pairs(store, cell):
    """Return the pairs of terms of a cell as "term/term", strongest first."""
    arrays = store.arrays(cell)
    names = arrays["names"]
    return [f"{names[i]}/{names[j]}" for i, j in zip(arrays["i"], arrays["j"], strict=True)]


def _both_draws(store, cells, console, table, title, metrics):
    """Show the paper's own data beside its figures, then fresh draws, which have none."""
    own = [cell for cell in cells if cell.experiment == "small-paper"]
    fresh = [cell for cell in cells if cell.experiment == "small"]
    _table(store, own, console, table, title, metrics)
    _table(store, fresh, console, "", f"{title}, fresh draws", metrics, f"{table}-fresh")


def _table(store, cells, console, table, title, metrics, file_name=None, *, shown=None, digits=2):
    """Print some metrics of the cells and write all of them to a file."""
    both = beside_paper(averages(store, cells, metrics), table)
    both.to_csv(store.folder / f"{file_name or table}.csv", index=False)
    for metric in shown or metrics:
        if not both[(both["metric"] == metric) & np.isfinite(both["mean"])].empty:
            show(console, both, metric, title, digits)


def _picture(store, console, name, draw, *content):
    path = store.folder / name
    draw(*content, path)
    console.print(f"picture: {path}", highlight=False)


def _finished(store, cells):
    return [cell for cell in cells if cell in store]
