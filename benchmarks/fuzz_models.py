"""Altered model files: damage, and archives that are well formed and lie."""

import io
import json
import pickle
import zipfile

import fuzz_bytes
import numpy as np

import mnpca
from mnpca.persistence import ModelFileError

ROWS, COLUMNS = 12, 8
HOSTILE = [
    None,
    True,
    -1,
    10**18,
    10**400,
    1e308,
    "",
    "../../x",
    "__class__",
    [],
    [[[]]],
    {},
    {"type": "os.system"},
    {"type": "array", "number": 0},
    {"type": "array", "number": -1},
    {"type": "float", "value": "nan"},
    {"type": "scalar", "dtype": "O", "hex": "00"},
    {"type": "scalar", "dtype": "V1000000000", "hex": ""},
    {"type": "objects", "shape": [10**9, 0], "items": []},
]


class Payload:
    """What unpickling would run: it leaves a file behind."""

    def __reduce__(self):
        return (open, ("escaped", "w"))


def corpus(rng, folder):
    """Return the bytes of one good file of every estimator."""
    X = rng.normal(size=(ROWS, COLUMNS)) + 3 * np.outer(rng.normal(size=ROWS), np.ones(COLUMNS))
    models = [
        mnpca.GeneralizedPCA(n_components=2).fit(X),
        mnpca.SparsePrecision(alpha=0.1).fit(X),
        mnpca.LikelihoodMNPCA(n_components=2).fit(X),
        mnpca.WassersteinMNPCA(n_components=2).fit(X),
        mnpca.MNPCA(n_components=2).fit(X),
        mnpca.TensorMNPCA(1).fit(np.stack([X, X[::-1], 2 * X])),
        mnpca.DimensionFoldingPCA(1, 1).fit(np.stack([X, X[::-1], 2 * X])),
    ]
    files = []
    for model in models:
        path = folder / "good.mnpca"
        model.save(path)
        files.append(path.read_bytes())
        path.unlink()
    return files


def alter(files, rng):
    """Return (way, file name, bytes) of one altered file."""
    data = files[rng.integers(len(files))]
    ways = {**fuzz_bytes.WAYS, "junk": fuzz_bytes.junk, **STRUCTURAL}
    way = str(rng.choice(list(ways)))
    return way, "model.mnpca", ways[way](data, rng)


def read(path):
    """Load the file; use what was loaded, which may fail but not break the process."""
    try:
        model = mnpca.load(path)
    except ModelFileError:
        return "refused"
    for shape in ((3, COLUMNS), (2, ROWS, COLUMNS)):
        try:
            model.transform(np.ones(shape))
            model.score(np.ones(shape))
        except Exception:
            # A well-formed file may still describe a senseless model.
            continue
    return "read"


def unpack(data):
    """Return the members of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(members, compression=zipfile.ZIP_STORED):
    """Return an archive with right checksums, whatever is in it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def json_value(data, rng):
    """Replace or remove one value of the document."""
    members = unpack(data)
    document = json.loads(members["document.json"])
    places = list(_places(document))
    for _ in range(rng.integers(1, 4)):
        holder, key = places[rng.integers(len(places))]
        if rng.random() < 0.2 and isinstance(holder, dict):
            holder.pop(key, None)
        elif isinstance(holder, dict) or key < len(holder):
            holder[key] = HOSTILE[rng.integers(len(HOSTILE))]
    members["document.json"] = json.dumps(document).encode()
    return pack(members)


def _places(tree):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def json_text(data, rng):
    """Damage the document's text inside a sound archive, or nest it very deep."""
    members = unpack(data)
    if rng.random() < 0.2:
        depth = int(rng.integers(1000, 100_000))
        members["document.json"] = b"[" * depth + b"]" * depth
    else:
        way = list(fuzz_bytes.WAYS.values())[rng.integers(len(fuzz_bytes.WAYS))]
        members["document.json"] = way(members["document.json"], rng)
    return pack(members)


def array_header(data, rng):
    """Let an array claim another shape, type or order."""
    members = unpack(data)
    name = _array_name(members, rng)
    shape = tuple(int(s) for s in rng.choice([-1, 0, 1, 3, 10**6, 10**12, 2**62], rng.integers(4)))
    dtype = rng.choice(["<f8", "|O", "<i4", "|V8", "<U9999999", ">f8", "<M8[s]", "|b1", "zz"])
    header = f"{{'descr': '{dtype}', 'fortran_order': {rng.random() < 0.5}, 'shape': {shape}, }}"
    padded = header.encode().ljust(117) + b"\n"
    body = members[name][128:]
    members[name] = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + body
    return pack(members)


def array_values(data, rng):
    """Fill an array with random bytes: wild indices, NaN, huge numbers."""
    members = unpack(data)
    for _ in range(rng.integers(1, 4)):
        name = _array_name(members, rng)
        head, body = members[name][:128], members[name][128:]
        members[name] = head + rng.bytes(len(body))
    return pack(members)


def swap_arrays(data, rng):
    """Exchange two arrays."""
    members = unpack(data)
    first, second = _array_name(members, rng), _array_name(members, rng)
    members[first], members[second] = members[second], members[first]
    return pack(members)


def pickled(data, rng):
    """Hide a pickle that would run code, as an array or as the whole file."""
    if rng.random() < 0.3:
        return pickle.dumps(Payload())
    members = unpack(data)
    out = io.BytesIO()
    np.save(out, np.array([Payload()], dtype=object), allow_pickle=True)
    members[_array_name(members, rng)] = out.getvalue()
    return pack(members)


def names(data, rng):
    """Add members whose names lead out of the folder."""
    members = unpack(data)
    for name in rng.choice(["../escaped", "/escaped", "arrays/../../escaped", "C:\\x", "a\0b"], 2):
        members[str(name)] = b"x"
    return pack(members)


def bomb(data, rng):
    """Compress members, the more so large arrays of zeros."""
    members = unpack(data)
    out = io.BytesIO()
    np.save(out, np.zeros(int(rng.integers(10**5, 10**7))))
    members[_array_name(members, rng)] = out.getvalue()
    return pack(members, zipfile.ZIP_DEFLATED)


def future(data, rng):
    """Claim another schema or kind."""
    members = unpack(data)
    document = json.loads(members["document.json"])
    if rng.random() < 0.7:
        document["schema"] = [2, 999, 0, -1, "1", None, 1.5][rng.integers(7)]
    else:
        document["kind"] = ["checkpoint", "", None][rng.integers(3)]
    members["document.json"] = json.dumps(document).encode()
    return pack(members)


def _array_name(members, rng):
    return str(rng.choice([name for name in members if name.startswith("arrays/")]))


STRUCTURAL = {
    "json value": json_value,
    "json text": json_text,
    "array header": array_header,
    "array values": array_values,
    "swapped arrays": swap_arrays,
    "pickle": pickled,
    "member names": names,
    "bomb": bomb,
    "schema": future,
}
