"""Our figures beside the paper's."""

from importlib.resources import files

import numpy as np
import pandas as pd

#: The paper's methods by the names that they have here.
PAPER_NAMES = {
    "LikelihoodMNPCA": "MN-PCA",
    "LikelihoodMNPCA-printed": "MN-PCA",
    "WassersteinMNPCA": "MN-PCA-w2",
    "WassersteinMNPCA-gradient": "MN-PCA-w2",
    "WassersteinMNPCA-original": "MN-PCA-w2*",
    "SparsePrecision": "QUIC",
}

#: Methods that stand beside the paper's figures of another: its program, penalties and descent.
SAME_IN_PAPER = {
    "MN-PCA-program": "LikelihoodMNPCA",
    "LikelihoodMNPCA-printed": "LikelihoodMNPCA",
    "WassersteinMNPCA-gradient": "WassersteinMNPCA",
}


def paper_figures(table):
    """Return the paper's published means and standard deviations of one table."""
    source = files("reproduction") / "paper_figures.csv"
    with source.open() as stream:
        figures = pd.read_csv(stream)
    return figures[figures["table"] == table].drop(columns="table")


def averages(store, cells, metrics):
    """Return mean and standard deviation over seeds, by data, method and metric.

    The standard deviation divides by the number of seeds less one and is nan for a single seed;
    a cell that measured its own spread (``<metric>_sd``) lends it.
    """
    rows = []
    for cell in cells:
        if cell not in store:
            continue
        numbers = store.metrics(cell)
        rows += [
            (cell.data, cell.method, metric, numbers[metric], numbers.get(f"{metric}_sd"))
            for metric in metrics
            if metric in numbers
        ]
    frame = pd.DataFrame(rows, columns=["data", "method", "metric", "value", "own_sd"])
    frame["own_sd"] = frame["own_sd"].astype(float)
    grouped = frame.groupby(["data", "method", "metric"], sort=False)
    result = grouped.agg(
        mean=("value", "mean"), sd=("value", "std"), own_sd=("own_sd", "mean"), n=("value", "size")
    ).reset_index()
    result["sd"] = result["sd"].fillna(result.pop("own_sd"))
    return result


def beside_paper(ours, table):
    """Return our averages with the paper's figures and the differences, where it has them."""
    paper = paper_figures(table).rename(columns={"mean": "paper", "sd": "paper_sd"})
    for method, same in SAME_IN_PAPER.items():
        paper = pd.concat([paper, paper[paper["method"] == same].assign(method=method)])
    both = ours.merge(paper, on=["data", "method", "metric"], how="left")
    both["difference"] = both["mean"] - both["paper"]
    return both


def cell_text(row, digits):
    """Write "ours (sd) | paper, difference" for one row of `beside_paper`."""
    if np.isnan(row["mean"]):
        ours = "no result"
    else:
        ours = f"{row['mean']:.{digits}f}"
        if not np.isnan(row["sd"]):
            ours += f" ({row['sd']:.{digits}f})"
    if "paper" not in row or np.isnan(row["paper"]):
        return ours
    # Adding 0 turns a rounded -0 into 0.
    rounded = round(row["difference"], digits) + 0.0
    difference = "" if np.isnan(rounded) else f", {rounded:+.{digits}f}"
    return f"{ours} | {row['paper']:.{digits}f}{difference}"


def pivot(both, metric, digits=2):
    """Return one metric as a table of texts: data down, methods across."""
    part = both[both["metric"] == metric]
    methods = list(dict.fromkeys(part["method"]))
    rows = {}
    for _, row in part.iterrows():
        rows.setdefault(row["data"], {})[row["method"]] = cell_text(row, digits)
    return methods, [(data, *[texts.get(m, "") for m in methods]) for data, texts in rows.items()]


def heading(method):
    """Return a method's name, with the paper's name for it where there is one."""
    return f"{method} ({PAPER_NAMES[method]})" if method in PAPER_NAMES else method


def show(console, both, metric, title, digits=2):
    """Print one metric in the terminal: as many methods side by side as its width allows."""
    from rich.table import Table

    methods, rows = pivot(both, metric, digits)
    columns = [
        (heading(method).replace(" (", "\n("), [row[i] for row in rows])
        for i, method in enumerate(methods, start=1)
    ]
    names = [row[0] for row in rows]
    beside = "paper" in both and both.loc[both["metric"] == metric, "paper"].notna().any()
    legend = "ours (sd) | paper, difference" if beside else "mean (sd)"
    for part in _that_fit(columns, console.width - _width("", names) - 1):
        table = Table(title=f"{title}: {metric}; {legend}")
        for head, _ in (("", names), *part):
            table.add_column(head, no_wrap=True)
        for row in zip(names, *(texts for _, texts in part), strict=True):
            table.add_row(*row)
        console.print(table)


def _that_fit(columns, width):
    """Yield runs of columns (heading, texts) that fit into a width; at least one in each."""
    part, left = [], width
    for column in columns:
        left -= _width(*column)
        if part and left < 0:
            yield part
            part, left = [], width - _width(*column)
        part.append(column)
    if part:
        yield part


def _width(head, texts):
    """Characters that a column takes: its longest line, a space at both sides, a border."""
    return 3 + max(map(len, [*head.split("\n"), *texts]))


def markdown(both, metric, digits=2):
    """Write one metric as a Markdown table."""
    methods, rows = pivot(both, metric, digits)
    lines = ["| | " + " | ".join(map(heading, methods)) + " |", "|---" * (len(methods) + 1) + "|"]
    for data, *texts in rows:
        cells = (text.replace(" | ", " / ") for text in texts)
        lines.append(f"| {data} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
