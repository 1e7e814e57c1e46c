"""What a message says: the error, names of the data in one line, and remedies for cells."""

import re
from collections.abc import Iterable

#: Marks between groups of three digits, and the shapes of numbers that Python does not read.
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{2,3})*,\d{3}(\.\d*)?")  # in India 12,34,567
_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_POINTS_AND_COMMA = re.compile(r"[-+]?\d{1,3}(\.\d{3})+(,\d*)?")
_SPACED = re.compile(r"[-+]?\d{1,3}([ '’\u00a0\u202f]\d{3})+([.,]\d*)?")
_AFFIXED = re.compile(r"([^\w\s.,'+-]*)\s*[-+]?\d[\d.,'’\u00a0\u202f]*(?:[eE][-+]?\d+)?\s*(\D*)")
#: A word for a missing value, short and without digits, or an error of a spreadsheet.
_WORD = re.compile(r"\D{1,12}|#[A-Z0-9/]+[!?]?")
#: Shapes that no option should guess: brackets mean a negative number in some tables only.
_ADVICE = {
    re.compile(r"\([^()]*\d[^()]*\)"): (
        "Pass --strip '(' --strip ')' if the brackets only mark a number; if they mean a negative "
        "one, write it with a minus sign"
    ),
    re.compile(r"[\d.,]+-"): "Write the minus sign before the number",
    re.compile(r"[-+]?[\d.,]+[dD][-+]?\d+"): "Write the exponents with E, as in 1.5E+03",
}


class DataError(ValueError):
    """A data file that cannot be used, in one line that says why and what to do.

    Examples
    --------
    >>> from mnpca.io import DataError, read_table
    >>> try:
    ...     read_table("nowhere.csv")
    ... except DataError as error:
    ...     print(error)
    no such file: 'nowhere.csv'.
    """


def quoted(name: object, limit: int = 60) -> str:
    r"""Show a name from the data in a message: one line, of bounded length.

    Examples
    --------
    >>> from mnpca.io import quoted
    >>> quoted("two\nlines")
    "'two lines'"
    """
    text = " ".join(str(name).split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    return f"'{text[:limit]}...'" if len(text) > limit else f"'{text}'"


def listed(names: Iterable[object], limit: int = 5) -> str:
    """Show the first few names of a list, and how many more there are.

    Examples
    --------
    >>> from mnpca.io import listed
    >>> listed("abc", limit=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    shown = ", ".join(quoted(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def shell_word(text: str) -> str:
    """Write a text as one word of a command line, in one printable line."""
    text = quoted(text)[1:-1]
    if re.fullmatch(r"[\w.,:/@+%-]+", text):
        return text
    return f'"{text}"' if "'" in text else f"'{text}'"


def remedy(written: dict[str, str], decimal: str, *, only_text: bool, may_name: bool) -> str | None:
    """Return what to pass so that cells are read as numbers, None where nothing is known.

    `written` has the cells, each with what is left of it after the texts to strip. `only_text` says
    that their column has no number, `may_name` that it may hold the row names.
    """
    cells = list(written.values())
    comma = "--decimal , " if decimal == "." else ""

    def all_match(*shapes: re.Pattern[str]) -> bool:
        return all(any(shape.fullmatch(cell) for shape in shapes) for cell in cells)

    if comma and all_match(_GROUPED):
        if any("." in cell or cell.count(",") > 1 for cell in cells):
            return "Pass --strip , to read numbers such as 1,234.5"
        return f"Pass --decimal , if {cells[0]} has a decimal comma, --strip , if it has thousands"
    if comma and all_match(_COMMA):
        return "Pass --decimal , to read decimal commas"
    if all_match(_COMMA, _POINTS_AND_COMMA):
        return f"Pass {comma}--strip . to read numbers such as 1.234,5"
    if all_match(_SPACED, _COMMA):
        cell = next(filter(_SPACED.fullmatch, cells))
        mark = next(c for c in cell.lstrip("+-") if not c.isdigit())
        mark = "' '" if mark.isspace() else shell_word(mark)
        comma = comma if any("," in cell for cell in cells) else ""
        return f"Pass {comma}--strip {mark} to read numbers such as {quoted(cell)}"
    for shape, advice in _ADVICE.items():
        if all_match(shape):
            return advice
    parts = [match.groups() for match in map(_AFFIXED.fullmatch, cells) if match]
    affixes = {text.strip() for part in parts for text in part} - {""}
    names = only_text and any(len(a) > 8 or (may_name and a.isalpha()) for a in affixes)
    if len(parts) == len(cells) and 1 <= len(affixes) <= 2 and not names:
        options = " ".join(f"--strip {shell_word(text)}" for text in sorted(affixes))
        missing = f", or --na {shell_word(cells[0])} if it is missing" if "<" in affixes else ""
        return f"Pass {options} to read cells such as {quoted(cells[0])}{missing}"
    words = [cell for cell in written if _WORD.fullmatch(cell)]
    others = {cell: bare for cell, bare in written.items() if cell not in words}
    if not 1 <= len(words) <= 5 or (only_text and not others):
        return None
    options = " ".join(f"--na {shell_word(word)}" for word in words)
    if not others:
        return f"Pass {options} if this stands for a missing value"
    other = remedy(others, decimal, only_text=only_text, may_name=may_name)
    return other and f"{other}, and {options} if this stands for a missing value"
