"""``mnpca report``: the report of an earlier fit, rendered again, or two fits compared."""

from mnpca.cli.fit import CONTENT_FILE, MODEL_FILE, REPORT_FILE
from mnpca.estimators._load import load
from mnpca.io import DataError, quoted
from mnpca.report import load_content, render, write_comparison, write_text

COMPARISON_FILE = "comparison.html"


def write_report(out, other):
    """Write the report of one folder, or the comparison of two; return its path."""
    if other is not None:
        models = [load(_existing(folder, MODEL_FILE)) for folder in (out, other)]
        write_comparison(*models, other / COMPARISON_FILE, names=(out.name, other.name))
        return other / COMPARISON_FILE
    content = _existing(out, CONTENT_FILE)
    try:
        page = render(load_content(content))
    except Exception as error:
        raise DataError(
            f"{quoted(content, 200)} is damaged or from another version; fit again."
        ) from error
    write_text(out / REPORT_FILE, page)
    return out / REPORT_FILE


def _existing(folder, name):
    """Return a file of a folder of results, or say that it is none."""
    if not (folder / name).is_file():
        raise DataError(f"{quoted(folder, 200)} is not a folder that mnpca fit wrote: no {name}.")
    return folder / name
