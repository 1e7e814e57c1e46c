"""What a person sees while a fit runs: one line, or one for each stage where output is piped."""

import contextlib
import math
import time

COMPILING = "compiling, once after installation"
#: Seconds after which a stage that comes again is told again, where output is piped.
AGAIN = 10.0
#: Characters beside the sign of life and the time, on a line of 80.
ROOM = 69


@contextlib.contextmanager
def progress_display(console, *, silent=False):
    """Give a callback that shows how a fit goes; on a terminal it vanishes at the end."""
    if silent:
        yield None
        return
    with (_line if console.is_terminal else _lines)(console) as show:
        pace = Pace()
        with _compilation(lambda: show(COMPILING)):
            yield lambda progress: show(*pace(progress))


@contextlib.contextmanager
def _line(console):
    """Show one line that is written over, no wider than the terminal."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    text = TextColumn("{task.description}", table_column=Column(no_wrap=True), markup=False)
    columns = (SpinnerColumn(), TimeElapsedColumn(), text)
    with Progress(*columns, console=console, transient=True) as display:
        task = display.add_task("starting", total=None)

        def show(*parts):
            line = parts[0]
            for part in parts[1:]:
                line += f", {part}" if len(line) + len(part) + 2 <= ROOM else ""
            display.update(task, description=line[:ROOM])

        yield show


@contextlib.contextmanager
def _lines(console):
    """Print a plain line when a stage begins: the model and its rank, not each of its starts."""
    start, told = time.monotonic(), {}

    def show(stage, *details):
        now, stage = time.monotonic(), stage if stage == COMPILING else stage.split(", ")[0]
        if stage in told and now - max(told.values()) < AGAIN:
            return
        told[stage] = now
        console.print(f"{now - start:.0f} s: {stage}", highlight=False, markup=False)

    yield show


class Pace:
    """Returns what a report says, the most important first, with the time its stage may take."""

    def __init__(self):
        self._stage, self._start, self._first = None, 0.0, 0

    def __call__(self, progress):
        """Return stage, iteration, remaining time where it can be told, and objective."""
        now, iteration = time.monotonic(), progress.iteration
        if progress.stage != self._stage or iteration <= self._first:
            self._stage, self._start, self._first = progress.stage, now, iteration
        parts = [progress.stage, f"iteration {iteration}"]
        if progress.most is not None and iteration > self._first:
            pace = (now - self._start) / (iteration - self._first)
            parts.append(f"at most {_duration((progress.most - iteration) * pace)} left")
        if math.isfinite(progress.objective):
            parts.append(f"objective {progress.objective:.4g}")
        return parts


def _duration(seconds):
    minutes, seconds = divmod(round(max(seconds, 0.0)), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


@contextlib.contextmanager
def _compilation(tell):
    """Call `tell` when numba begins to compile a kernel, which it does once and stores."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event):
            tell()

        def on_end(self, event):
            """Leave the line to the next report."""

    with event.install_listener("numba:compile", Listener()):
        yield
