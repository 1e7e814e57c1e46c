"""Counts the elementary operations of every step of a fit, and its processor time.

The counts are the cost model of docs/scale.md: multiplications, and what goes with them in units
of a multiplication.
"""

import time

#: Side of the tiles in which all pairs are searched; tiles on the diagonal are computed whole.
TILE = 1024
#: Comparing an entry of a tile with the level costs as much as so many multiplications.
COMPARE = 64
#: Fetching a row and taking the signal off it costs as much as so many multiplications.
FETCH = 320
#: The same for a row of a block that is read in order.
READ = 128


class Meter:
    """Operations and seconds by name of the step."""

    def __init__(self):
        self.work = {}
        self.seconds = {}
        self._spent = 0.0

    def run(self, name, amount, function):
        """Run a step of so many operations; steps inside it are not counted to it."""
        began, before = time.process_time(), self._spent
        result = function()
        spent = time.process_time() - began
        inside = self._spent - before
        self._spent = before + spent
        self.work[name] = self.work.get(name, 0.0) + amount
        self.seconds[name] = self.seconds.get(name, 0.0) + spent - inside
        return result


def _size(engine, *_):
    n, p = engine.shape
    return n * p


def _all_pairs(gram, _):
    rows = gram.n_rows
    return rows * (gram.size - rows / 2 + TILE / 2)


def _column_products(engine, *_):
    n, p = engine.shape
    return n * p * (p + READ)


#: Method of an engine -> (step, number of operations).
ENGINE = {
    "standardized": ("standardize", _size),
    "times": ("products", _size),
    "transposed_times": ("products", _size),
    "squares": ("sums of squares", lambda *_: 0),
    "row_norms": ("sums of squares", _size),
    "col_norms": ("sums of squares", _size),
    "weighted_norm": ("weighted norm", _size),
    "row_gram": ("rows: variances", lambda *_: 0),
    "col_gram": ("columns: Gram matrix", _column_products),
}
#: Method of a Gram -> (step, number of products, what each costs beyond its own length).
GRAM = {
    "diagonal": ("variances", lambda gram: gram.size, 0),
    "entries": ("listed pairs", lambda gram, i, j: len(i), FETCH),
    "component_blocks": ("components", lambda gram, order, bounds, offsets: offsets[-1], FETCH),
    "large_entries": ("all pairs", _all_pairs, COMPARE),
    "filtered": ("innovations", lambda gram, mix, rest, extra: mix.nnz, FETCH),
}


class Metered:
    """An engine, or what an engine returned, whose steps a meter counts."""

    def __init__(self, what, meter, steps, length=1.0, prefix=""):
        self.__dict__.update(_what=what, _meter=meter, _steps=steps, _length=length, _prefix=prefix)

    @property
    def __class__(self):
        return type(self._what)

    def __setattr__(self, name, value):
        setattr(self._what, name, value)

    def __getattr__(self, name):
        value = getattr(self._what, name)
        if name not in self._steps:
            return value
        step, amount, *beyond = self._steps[name]
        each = sum(beyond, start=self._length)

        def run(*arguments, **named):
            work = amount(self._what, *arguments, **named) * each
            result = self._meter.run(self._prefix + step, work, lambda: value(*arguments, **named))
            return self._wrapped(name, result)

        return run

    def _wrapped(self, name, result):
        meter = self._meter
        if name == "standardized":
            return Metered(result, meter, ENGINE)
        if name == "row_gram":
            return Metered(result, meter, GRAM, float(self.shape[1]), "rows: ")
        if name == "col_gram":
            return Metered(result, meter, GRAM, 1.0, "columns: ")
        if name == "filtered":
            return Metered(result, meter, GRAM, self._length, self._prefix)
        return result
