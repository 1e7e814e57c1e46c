"""Which values a file holds, and that they come back as they were."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.utils import Bunch
from tests.persistence.shared import same

from mnpca.model.low_rank import LowRank
from mnpca.persistence import fingerprint, read_document, write_document


def round_trip(value, folder):
    path = folder / "file.mnpca"
    write_document(path, "model", "1", {"value": value})
    return read_document(path, "model")["value"]


VALUES = [
    None,
    True,
    -(10**30),
    0.1,
    -0.0,
    float("nan"),
    float("-inf"),
    "naïve \U0001f600 \0",
    [1, [2.5, None]],
    (1, (2,), "a"),
    {"a": 1, 2: (3,)},
    Bunch(x=1, y=np.ones(2)),
    LowRank(np.ones((3, 1)), np.zeros((2, 1))),
    np.float32(0.1),
    np.int64(-3),
    np.bool_(True),
    np.str_("a"),
    np.str_(""),
    np.bytes_(b""),
    np.array(3.5),
    np.zeros((0, 4)),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(12).reshape(3, 4)[:, ::2],
    np.array(["a", "bc"]),
    np.array(["a", None, 1.5], dtype=object),
    np.array([1 + 2j], dtype=np.complex64),
    np.arange(3, dtype=">f4"),
    np.array(["2020-01-01"], dtype="M8[D]"),
    sp.csr_array(np.tri(5, 4, k=-1)),
    sp.csc_matrix(np.eye(3, dtype=np.float32)),
    sp.coo_array(np.eye(3)),
    sp.dia_array(np.eye(3)),
    sp.csr_array((0, 3)),
]


@pytest.mark.parametrize(
    "value", VALUES, ids=[f"{i}-{type(v).__name__}" for i, v in enumerate(VALUES)]
)
def test_values_come_back_to_the_bit(value, tmp_path):
    back = round_trip(value, tmp_path)
    assert same(value, back)
    assert fingerprint(value) == fingerprint(back)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)
arrays = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int32, np.bool_, np.complex128, np.uint8]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@settings(max_examples=60, deadline=None)
@given(value=json_values | arrays | st.lists(arrays, max_size=3))
def test_any_value_comes_back(tmp_path_factory, value):
    assert same(value, round_trip(value, tmp_path_factory.mktemp("values")))


def test_random_generators_go_on_where_they_were(tmp_path):
    generator = np.random.RandomState(3)
    generator.normal(size=7)
    back = round_trip(generator, tmp_path)
    assert np.array_equal(generator.normal(size=9), back.normal(size=9))


def test_arrays_come_back_writable_and_in_their_order(tmp_path):
    back = round_trip(np.asfortranarray(np.ones((4, 3))), tmp_path)
    assert back.flags.writeable
    assert back.flags.f_contiguous


@pytest.mark.parametrize(
    "value",
    [
        print,
        object(),
        {1, 2},
        np.array([object()]),
        np.ma.masked_array([1.0]),
        np.void(b"abc"),
        np.random.default_rng(0),
        np.random.RandomState(np.random.PCG64(0)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_types_are_refused_by_name_and_nothing_is_written(value, tmp_path):
    with pytest.raises(TypeError, match=r"content\['value'\]"):
        round_trip(value, tmp_path)
    assert os.listdir(tmp_path) == []


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_document(tmp_path / name, "model", "1", {"x": np.arange(3)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(4), np.zeros(5)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(3), np.zeros(3, dtype=np.float32)),
        (1, 1.0),
        ((1,), [1]),
        ({"a": 1}, {"a": 2}),
        (np.arange(4.0), np.arange(4.0)[::-1]),
    ],
)
def test_fingerprints_differ(one, other):
    assert fingerprint(one) != fingerprint(other)


def test_fingerprint_ignores_memory_layout():
    matrix = np.arange(12.0).reshape(3, 4)
    assert fingerprint(matrix) == fingerprint(np.asfortranarray(matrix))
    assert fingerprint(matrix[:, ::2]) == fingerprint(matrix[:, ::2].copy())
