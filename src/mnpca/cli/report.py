"""``mnpca report``: the report of an earlier fit, rendered again, or two fits compared."""

from mnpca.cli._results import CONTENT_FILE, MODEL_FILE, REPORT_FILE, print_json
from mnpca.estimators._load import load
from mnpca.io import DataError, quoted
from mnpca.report import load_content, render, write_comparison, write_text

COMPARISON_FILE = "comparison.html"


def write_again(out, other, *, json):
    """Write the report of one folder, or the comparison of two; return its path."""
    if other is None:
        path = out / REPORT_FILE
        write_text(path, _rendered(_existing(out, CONTENT_FILE)))
    else:
        path = other / COMPARISON_FILE
        models = [load(_existing(folder, MODEL_FILE)) for folder in (out, other)]
        write_comparison(*models, path, names=(out.name, other.name))
    if json:
        print_json({"report": str(path)})
    else:
        print(f"Report in {path}")
    return path


def _rendered(content):
    try:
        return render(load_content(content))
    except Exception as error:
        raise DataError(
            f"{quoted(content, 200)} is damaged or from another version; fit again."
        ) from error


def _existing(folder, name):
    """Return a file of a folder of results, or say that it is none."""
    if not (folder / name).is_file():
        raise DataError(f"{quoted(folder, 200)} is not a folder that mnpca fit wrote: no {name}.")
    return folder / name
