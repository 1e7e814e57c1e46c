"""What a person sees while a fit runs: one line, or one for each stage where output is piped."""

import contextlib
import math
import time

COMPILING = "compiling, once after installation"
#: Seconds after which a stage that comes again is told again, where output is piped.
AGAIN = 10.0


@contextlib.contextmanager
def progress_display(console, *, silent=False):
    """Give a callback that shows how a fit goes; on a terminal it vanishes at the end."""
    if silent:
        yield None
        return
    with (_line if console.is_terminal else _lines)(console) as show:
        pace = Pace()
        with _compilation(lambda compiling: show(COMPILING if compiling else None)):
            yield lambda progress: show(progress.stage, pace(progress))


@contextlib.contextmanager
def _line(console):
    """Show one line that is written over, no wider than the terminal."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    text = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns = (SpinnerColumn(), TimeElapsedColumn(), text)
    with Progress(*columns, console=console, transient=True) as display:
        task, last = display.add_task("starting", total=None), ["starting"]

        def show(stage, details=""):
            if stage != COMPILING:
                last[0] = f"[bold]{stage}[/bold]{details}" if stage else last[0]
            display.update(task, description=last[0] if stage != COMPILING else COMPILING)

        yield show


@contextlib.contextmanager
def _lines(console):
    """Print a plain line when a stage begins."""
    start, told = time.monotonic(), {}

    def show(stage, details=""):
        now = time.monotonic()
        if stage is None or (stage in told and now - max(told.values()) < AGAIN):
            return
        told[stage] = now
        console.print(f"{now - start:.0f} s: {stage}", highlight=False, markup=False)

    yield show


class Pace:
    """Tells iteration and objective of a report, and how long its stage goes on at most."""

    def __init__(self):
        self._stage, self._start = None, None

    def __call__(self, progress):
        now = time.monotonic()
        if progress.stage != self._stage or progress.iteration <= self._first:
            self._stage, self._start, self._first = progress.stage, now, progress.iteration
        words = f", iteration {progress.iteration}"
        if math.isfinite(progress.objective):
            words += f", objective {progress.objective:.5g}"
        done = progress.iteration - self._first
        if progress.most is not None and done > 0:
            left = (progress.most - progress.iteration) * (now - self._start) / done
            words += f", at most {_duration(left)} left"
        return words


def _duration(seconds):
    minutes, seconds = divmod(round(max(seconds, 0.0)), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


@contextlib.contextmanager
def _compilation(tell):
    """Tell when numba begins to compile and when it is done."""
    from numba.core import event

    class Listener(event.Listener):
        depth = 0

        def on_start(self, event):
            self.depth += 1
            if self.depth == 1:
                tell(True)

        def on_end(self, event):
            self.depth -= 1
            if self.depth == 0:
                tell(False)

    with event.install_listener("numba:compile", Listener()):
        yield
