"""Several matrices and tensors with known truth."""

import numpy as np
import pytest

from mnpca.datasets import make_several_matrices, make_tensor_normal


def test_an_array_without_signal():
    data = make_tensor_normal((5, 4, 3), rank=0, random_state=0)
    assert not data.signal.any()
    assert np.isfinite(data.Y).all()


def test_the_size_of_a_signal():
    data = make_tensor_normal((5, 4, 3), rank=(2, 1, 2), signal_scale=3.0, random_state=0)
    assert np.mean(data.signal**2) == pytest.approx(9 * 0.2)
    assert np.linalg.matrix_rank(data.signal[:, :, 0]) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: make_several_matrices(3, 5, 4, row_precision=np.eye(1)),
            r"row_precision .*5, 5",
        ),
        (
            lambda: make_several_matrices(3, 5, 4, col_precision=np.eye(5)),
            r"col_precision .*4, 4",
        ),
        (lambda: make_tensor_normal((5, 4, 3), rank=(2, 2)), r"rank=\(2, 2\)"),
        (lambda: make_tensor_normal((5, 4, 3), rank=4), "rank=4"),
        (lambda: make_tensor_normal((5, 4), precisions=[np.eye(5)]), "precisions"),
        (lambda: make_tensor_normal((5, 4), precisions=[np.eye(5), np.eye(3)]), "precisions"),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
