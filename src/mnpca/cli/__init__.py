"""The command line. What a command needs is imported when it runs; errors are one line."""

import errno
import os
import signal
import sys
import threading

FAILED, WRONG_INPUT, INTERRUPTED, TERMINATED = 1, 2, 130, 143


class Terminated(KeyboardInterrupt):
    """The system asked the command to end: what Ctrl-C does is done, with another exit code."""


def main(arguments=None):
    """Run the command ``mnpca``; return its exit code.

    0: done. 1: the computation failed. 2: wrong input or usage. 130: interrupted. 143: terminated.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character that a console lacks is no failure
            stream.reconfigure(errors="replace")
    before = _handle_sigterm(_terminate)
    try:
        return _run(sys.argv[1:] if arguments is None else list(arguments))
    except ModuleNotFoundError as error:
        message = "the command line needs more packages: pip install 'mnpca[app]'"
        return _fail(f"{message} (missing: {error.name})", FAILED)
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    finally:
        _handle_sigterm(before)


def _handle_sigterm(handler):
    """Set the handler of SIGTERM and return the one before; only the main thread may."""
    if handler is not None and threading.current_thread() is threading.main_thread():
        return signal.signal(signal.SIGTERM, handler)
    return None


def _terminate(number, frame):
    raise Terminated


def _run(arguments):
    """Run the command and turn what it raises into a line and an exit code."""
    import typer

    from mnpca.cli.app import Interrupted, app

    # The base of usage errors, found through typer: it brings its own click, or uses click itself.
    usage = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        code = app(arguments or ["--help"], standalone_mode=False, prog_name="mnpca") or 0
        # Ctrl-C before the command begins ends in a code, without a message.
        return _interrupted(KeyboardInterrupt()) if code == INTERRUPTED else code
    except usage as problem:
        help_page = getattr(getattr(problem, "ctx", None), "command_path", "mnpca")
        message = _one_line(problem.format_message())
        return _fail(f"{message} (see {help_page} --help)", WRONG_INPUT)
    except Interrupted as interrupted:
        return _interrupted(interrupted.__cause__)
    except typer.Abort as interrupt:
        return _interrupted(interrupt)
    except BrokenPipeError:
        return FAILED
    except Exception as error:
        if "--debug" in arguments:
            import traceback

            traceback.print_exc()
        return _fail(*_explain(error))


def _explain(error):
    """Return the line and the exit code for an error."""
    import numpy as np

    from mnpca.io import quoted

    message, hint = _one_line(error), "(run again with --debug to see where)"
    if isinstance(error, MemoryError):
        return "the computation does not fit in this machine's memory.", FAILED
    if isinstance(error, np.linalg.LinAlgError):  # a ValueError, but no fault of the input's form
        return f"{message} {hint}", FAILED
    if isinstance(error, (ValueError, ImportError, FileNotFoundError, PermissionError)):
        return message, WRONG_INPUT
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        # A file in the making has a longer name than its own.
        name = quoted(os.path.basename(str(error.filename)).removeprefix("."))
        return f"a name is too long for the file system: {name}; give a shorter one.", WRONG_INPUT
    if isinstance(error, OSError):
        return message, FAILED
    return f"{type(error).__name__}: {message or 'no details'} {hint}", FAILED


def _interrupted(interrupt):
    kept = any("is kept" in note for note in getattr(interrupt, "__notes__", []))
    remedy = "; run the same command with --resume to continue from the checkpoint" if kept else ""
    code = TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
    return _fail(f"interrupted, nothing was written{remedy}.", code)


def _fail(message, code):
    print(f"mnpca: error: {message}", file=sys.stderr)
    return code


def _one_line(text):
    text = " ".join(str(text).split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 600 else text[:600] + "..."
