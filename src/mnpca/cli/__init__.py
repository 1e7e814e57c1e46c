"""The command line: one file per command. What a command needs is imported when it runs."""

import signal
import sys
import threading

_MISSING = (
    "mnpca: error: the command line needs more packages: pip install 'mnpca[app]' (missing: {})"
)
INTERRUPTED, TERMINATED = 130, 143


class Terminated(KeyboardInterrupt):
    """The system asked the command to end: what Ctrl-C does is done, with another exit code."""


def main(arguments=None):
    """Run the command ``mnpca``; return its exit code.

    0: done. 1: the computation failed. 2: wrong input or usage. 130: interrupted. 143: terminated.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character that a console lacks is no failure
            stream.reconfigure(errors="replace")
    before = _listen(_terminate)
    try:
        from mnpca.cli._errors import run
        from mnpca.cli.app import app

        return run(app, sys.argv[1:] if arguments is None else list(arguments))
    except ModuleNotFoundError as error:
        print(_MISSING.format(error.name), file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print("mnpca: error: interrupted, nothing was written.", file=sys.stderr)
        return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
    finally:
        _listen(before)


def _listen(handler):
    """Set who hears SIGTERM and return who did; only the main thread may."""
    if handler is not None and threading.current_thread() is threading.main_thread():
        return signal.signal(signal.SIGTERM, handler)
    return None


def _terminate(number, frame):
    raise Terminated
