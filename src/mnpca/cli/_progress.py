"""What a person sees while a fit runs."""

import contextlib
import math


@contextlib.contextmanager
def progress_display(console, *, silent=False):
    """Give a callback that shows stage, iteration and objective; it vanishes at the end."""
    if silent or not console.is_terminal:
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("[bold]{task.description}"),
        TextColumn("iteration {task.fields[iteration]}"),
        TextColumn("objective {task.fields[objective]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as display:
        task = display.add_task("starting", total=None, iteration="-", objective="-")

        def show(progress):
            value = progress.objective
            display.update(
                task,
                description=progress.stage,
                iteration=str(progress.iteration),
                objective=f"{value:.6g}" if math.isfinite(value) else "-",
            )

        yield show
