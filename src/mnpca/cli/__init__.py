"""The command line: one file per command."""

import sys

_MISSING = (
    "mnpca: error: the command line needs more packages: pip install 'mnpca[app]' (missing: {})"
)


def main(arguments=None):
    """Run the command ``mnpca``; return its exit code.

    0: done. 1: the computation failed. 2: wrong input or usage. 130: interrupted.
    """
    try:
        from mnpca.cli._errors import run
        from mnpca.cli.app import app
    except ModuleNotFoundError as error:
        print(_MISSING.format(error.name), file=sys.stderr)
        return 1
    return run(app, sys.argv[1:] if arguments is None else list(arguments))
