"""Errors as one line for a person; tracebacks only on request."""

import errno
import functools
import os
import sys
import traceback

import typer

from mnpca.cli import INTERRUPTED, TERMINATED, Terminated

WRONG_INPUT, FAILED = 2, 1

#: The base of usage errors, found through typer: it brings its own click, or uses click itself.
_UsageProblem = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class Interrupted(Exception):
    """Ctrl-C during a command; typer would end without a word."""


def speak_up(command):
    """Make a command raise `Interrupted` where Python raises KeyboardInterrupt."""

    @functools.wraps(command)
    def wrapped(*args, **kwargs):
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            raise Interrupted from interrupt

    return wrapped


def run(app, arguments):
    """Run the command and turn what it raises into a line and an exit code."""
    debug = "--debug" in arguments
    try:
        return app(arguments or ["--help"], standalone_mode=False, prog_name="mnpca") or 0
    except _UsageProblem as problem:
        help_page = getattr(getattr(problem, "ctx", None), "command_path", "mnpca")
        message = _one_line(problem.format_message())
        return _fail(f"{message} (see {help_page} --help)", WRONG_INPUT)
    except Interrupted as interrupted:
        return _interrupted(interrupted.__cause__)
    except (typer.Abort, KeyboardInterrupt) as interrupt:
        return _interrupted(interrupt)
    except BrokenPipeError:
        return FAILED
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _fail(*_explain(error))


def _explain(error):
    import numpy as np

    from mnpca.io import quoted

    message = _one_line(str(error))
    if isinstance(error, MemoryError):
        return "the computation does not fit in this machine's memory.", FAILED
    if isinstance(error, np.linalg.LinAlgError):  # a ValueError, but no fault of the input's form
        return f"{message} (run again with --debug to see where)", FAILED
    if isinstance(error, (ValueError, ImportError, FileNotFoundError, PermissionError)):
        return message, WRONG_INPUT
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        # A file in the making has a longer name than its own.
        name = quoted(os.path.basename(str(error.filename)).removeprefix("."))
        return f"a name is too long for the file system: {name}; give a shorter one.", WRONG_INPUT
    if isinstance(error, OSError):
        return message, FAILED
    kind = type(error).__name__
    return f"{kind}: {message or 'no details'} (run again with --debug to see where)", FAILED


def _interrupted(interrupt):
    kept = any("is kept" in note for note in getattr(interrupt, "__notes__", []))
    remedy = "; run the same command with --resume to go on from the checkpoint" if kept else ""
    code = TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
    return _fail(f"interrupted, nothing was written{remedy}.", code)


def _fail(message, code):
    print(f"mnpca: error: {message}", file=sys.stderr)
    return code


def _one_line(text):
    text = " ".join(str(text).split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 600 else text[:600] + "..."
