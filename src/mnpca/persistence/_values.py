"""Which values a file can hold, and how each is written.

JSON holds None, truth values, integers, finite floats, strings and lists as they are. Everything
else is a JSON object whose key "type" names its type; only the types in this module exist.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from mnpca.model.low_rank import LowRank

NAMED_TUPLES: dict[str, type[Any]] = {"LowRank": LowRank}
"""Types written as their fields, by the name they have in files."""

SPARSE_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
PLAIN_OBJECTS = (str, int, float, bool, type(None))


class Encoder:
    """Turns values into a JSON tree and a list of arrays beside it."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []

    def encode(self, value: Any, where: str) -> Any:
        """Return the JSON form of `value`; `where` names it in an error message."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            if np.isfinite(value):
                return value
            return {"type": "float", "value": repr(value)}
        if kind is list:
            return self._items(value, where)
        if kind is tuple:
            return {"type": "tuple", "items": self._items(value, where)}
        if kind is dict or kind is Bunch:
            items = [
                [self.encode(key, f"a key of {where}"), self.encode(item, f"{where}[{key!r}]")]
                for key, item in value.items()
            ]
            return {"type": kind.__name__, "items": items}
        if NAMED_TUPLES.get(kind.__name__) is kind:
            return {"type": kind.__name__, "items": self._items(tuple(value), where)}
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if kind is np.ndarray:
            return self._array(value, where)
        if sp.issparse(value):
            return self._sparse(value, where)
        if kind is np.random.RandomState:
            state = value.get_state(legacy=False)
            if state["bit_generator"] == "MT19937":
                return {"type": "RandomState", "state": self.encode(state, where)}
        raise TypeError(
            f"{where} is a {kind.__module__}.{kind.__qualname__}, which a model file cannot hold. "
            "Files hold numbers, strings, NumPy and SciPy sparse arrays, lists, tuples and dicts."
        )

    def _items(self, values: Any, where: str) -> list[Any]:
        return [self.encode(item, f"{where}[{i}]") for i, item in enumerate(values)]

    def _scalar(self, value: np.generic, where: str) -> dict[str, Any]:
        if value.dtype.kind not in "biufcSUmM":
            raise TypeError(f"{where} is a NumPy {value.dtype} scalar, which cannot be stored.")
        # As an array, an empty string has the same length in its type and in its bytes.
        array = np.asarray(value)
        return {"type": "scalar", "dtype": array.dtype.str, "hex": array.tobytes().hex()}

    def _array(self, value: Any, where: str) -> dict[str, Any]:
        if value.dtype.kind == "O":
            if not all(type(item) in PLAIN_OBJECTS for item in value.flat):
                raise TypeError(f"{where} is an object array of more than strings and numbers.")
            items = self._items(value.ravel().tolist(), where)
            return {"type": "objects", "shape": list(value.shape), "items": items}
        if value.dtype.kind not in "biufcSUmM":
            raise TypeError(f"{where} is an array of {value.dtype}, which cannot be stored.")
        self.arrays.append(value)
        return {"type": "array", "number": len(self.arrays) - 1}

    def _sparse(self, value: Any, where: str) -> dict[str, Any]:
        if value.format not in SPARSE_PARTS or value.ndim != 2:
            raise TypeError(f"{where} is a sparse {value.format} array; convert it to csr.")
        return {
            "type": "sparse",
            "format": value.format,
            "matrix": isinstance(value, sp.spmatrix),
            "shape": list(map(int, value.shape)),
            "parts": [
                self._array(getattr(value, name), where) for name in SPARSE_PARTS[value.format]
            ],
        }


class Decoder:
    """Turns a JSON tree back into values; `take_array` fetches an array by its number."""

    def __init__(self, take_array: Callable[[Any], Any]) -> None:
        self._take_array = take_array

    def decode(self, tree: Any) -> Any:
        """Return the value that `Encoder.encode` wrote; unknown types raise ValueError."""
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        kind = tree["type"]
        if kind in NAMED_TUPLES:
            return NAMED_TUPLES[kind](*self.decode(tree["items"]))
        decoders = {
            "float": lambda t: float(t["value"]),
            "tuple": lambda t: tuple(self.decode(t["items"])),
            "dict": self._dict,
            "Bunch": lambda t: Bunch(**self._dict(t)),
            "scalar": self._scalar,
            "array": lambda t: self._take_array(t["number"]),
            "objects": self._objects,
            "sparse": self._sparse,
            "RandomState": self._random_state,
        }
        if kind not in decoders:
            raise ValueError(f"unknown type {kind!r}")
        return decoders[kind](tree)

    def _dict(self, tree: dict[str, Any]) -> dict[Any, Any]:
        return {self.decode(key): self.decode(item) for key, item in tree["items"]}

    def _scalar(self, tree: dict[str, Any]) -> Any:
        dtype = np.dtype(str(tree["dtype"]))
        data = bytes.fromhex(tree["hex"])
        if dtype.kind not in "biufcSUmM" or len(data) != dtype.itemsize:
            raise ValueError("a scalar does not match its type")
        if not data:
            return dtype.type()
        return np.frombuffer(data, dtype)[0]

    def _objects(self, tree: dict[str, Any]) -> Any:
        items = self.decode(tree["items"])
        if not all(type(item) in PLAIN_OBJECTS for item in items):
            raise ValueError("an object array holds more than strings and numbers")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(tree["shape"])

    def _sparse(self, tree: dict[str, Any]) -> Any:
        form = tree["format"]
        parts = [self.decode(part) for part in tree["parts"]]
        if not all(type(part) is np.ndarray and part.dtype.kind in "biufc" for part in parts):
            raise ValueError("a part of a sparse array is not an array of numbers")
        shape = tuple(map(int, tree["shape"]))
        arguments = (parts[0], (parts[1], parts[2])) if form == "coo" else tuple(parts)
        make = getattr(sp, f"{form}_{'matrix' if tree['matrix'] else 'array'}")
        value = make(arguments, shape=shape)
        if form in ("csr", "csc"):
            # SciPy's compiled routines trust the indices, so they are checked here, once.
            value.check_format(full_check=True)
        return value

    def _random_state(self, tree: dict[str, Any]) -> np.random.RandomState:
        state = self.decode(tree["state"])
        # NumPy trusts the position, and would read past the key.
        if not 0 <= state["state"]["pos"] <= 624:
            raise ValueError("a random state has its position outside its key")
        generator = np.random.RandomState()
        generator.set_state(state)
        return generator


def fingerprint(value: Any) -> str:
    """Return a digest of a value that files can hold, the same for equal values.

    Arrays count by type, shape and elements, not by their layout in memory.
    """
    encoder = Encoder()
    tree = encoder.encode(value, where="value")
    digest = hashlib.blake2b(json.dumps(tree, allow_nan=False).encode(), digest_size=16)
    for array in encoder.arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        # By rows, so that a transposed or sliced matrix is never copied whole.
        for row in array if array.ndim > 1 else [array]:
            digest.update(np.ascontiguousarray(row).view(np.uint8).data)
    return digest.hexdigest()
