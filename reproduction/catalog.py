"""Every table and figure by name: its cells, how one is computed, how the whole is shown."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from reproduction import networks, real, recovery, timing
from reproduction.present import (
    present_networks,
    present_noise,
    present_real,
    present_scatter,
    present_swiss,
    present_table1,
    present_table2,
    present_table3,
    present_terms,
    present_times,
)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    title : str
        What it shows.
    cells : callable
        ``cells(quick, all_methods)``: what has to be computed.
    present : callable
        ``present(store, cells, console)``: prints the table, writes it and its picture.
    needs_data : bool
        Whether real data must be at hand.
    """

    title: str
    cells: Callable
    present: Callable
    needs_data: bool = False


EXPERIMENTS = {
    "table1": Experiment("low-rank recovery, small data", recovery.small_cells, present_table1),
    "table2": Experiment("noise networks, small data", recovery.network_cells, present_table2),
    "table3": Experiment("low-rank recovery, large data", recovery.large_cells, present_table3),
    "table5": Experiment(
        "classification of real data", real.real_cells, present_real, needs_data=True
    ),
    "figure-scatter": Experiment("projections", recovery.scatter_cells, present_scatter),
    "figure-time": Experiment("running time", timing.time_cells, present_times),
    "figure-swiss": Experiment("two Swiss rolls", recovery.swiss_cells, present_swiss),
    "figure-precision": Experiment(
        "network of patients", networks.precision_cells, present_networks, needs_data=True
    ),
    "terms": Experiment("pairs of terms", networks.term_cells, present_terms, needs_data=True),
    "noise": Experiment("other noise", recovery.noise_cells, present_noise),
}

_COMPUTE = {
    "small": recovery.compute_small,
    "small-paper": recovery.compute_small,
    "large": recovery.compute_large,
    "noise": recovery.compute_noise,
    "swiss": recovery.compute_swiss,
    "time": timing.compute_time,
    "real-paper": real.compute_paper,
    "real-nested": real.compute_nested,
    "network-rows": networks.compute_network,
    "network-columns": networks.compute_network,
}


def compute(cell):
    """Compute any cell; what it warns of becomes its note."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = _COMPUTE[cell.experiment](cell)
    messages = dict.fromkeys(_first_sentence(str(warning.message)) for warning in caught)
    outcome.note = "; ".join(filter(None, (outcome.note, *messages)))
    return outcome


def _first_sentence(text):
    return " ".join(text.split()).split(". ")[0]
