"""The summary of a fit: for a person, and for a program."""

import json


def summarize(model, document, *, data, algorithm, seconds, notes):
    """Return the summary as plain values."""
    rows, columns = document["networks"]["rows"], document["networks"]["columns"]
    return {
        "data": str(data),
        "n_rows": document["shape"][0],
        "n_columns": document["shape"][1],
        "algorithm": str(algorithm),
        "n_components": int(model.n_components_),
        "singular_values": [float(value) for value in model.singular_values_],
        "choice": document["noise"]["choice"],
        "row_edges": rows["n_edges"],
        "col_edges": columns["n_edges"],
        "whiteness": {
            side: {
                "before": document["whiteness"][side]["beyond"][0],
                "after": document["whiteness"][side]["beyond"][1],
            }
            for side in ("rows", "columns")
        },
        "converged": document["convergence"]["converged"],
        "n_iter": document["convergence"]["n_iter"],
        "seconds": round(seconds, 3),
        "notes": list(notes),
        "version": document["versions"]["mnpca"],
    }


def print_json(summary):
    """Print plain values as JSON on standard output."""
    print(json.dumps(summary, indent=2, ensure_ascii=False))


def print_summary(console, summary, document, out):
    """Print what was found and where it is."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    for title, figure, remark in document["cards"]:
        table.add_row(title, f"{figure}  [dim]{escape(remark)}[/dim]")
    console.print(table)
    if summary["choice"]:
        console.print(escape(summary["choice"]), highlight=False)
    for note in summary["notes"]:
        console.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False)
    if not summary["converged"]:
        console.print("[yellow]The fit did not converge; take the result with care.[/yellow]")
    console.print(f"Results in [bold]{escape(str(out))}[/bold]; open report.html there.")
