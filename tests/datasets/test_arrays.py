"""Several matrices and tensors with known truth."""

import numpy as np
import pytest

from mnpca.datasets import make_several_matrices, make_tensor_normal


def test_the_signal_of_a_tensor():
    data = make_tensor_normal((5, 4, 3), n_components=(2, 1, 2), signal_scale=3.0, random_state=0)
    assert np.mean(data.signal**2) == pytest.approx(9 * 0.2)
    assert np.linalg.matrix_rank(data.signal[:, :, 0]) == 1
    none = make_tensor_normal((5, 4, 3), n_components=0, random_state=0)
    assert not none.signal.any()
    assert np.isfinite(none.Y).all()


@pytest.mark.parametrize(
    ("make", "arguments", "named", "message"),
    [
        (make_several_matrices, (3, 5, 4), {"row_precision": np.eye(1)}, r"row_precision .*5, 5"),
        (make_several_matrices, (3, 5, 4), {"col_precision": np.eye(5)}, r"col_precision .*4, 4"),
        (make_tensor_normal, ((5, 4, 3),), {"n_components": (2, 2)}, r"n_components=\(2, 2\)"),
        (make_tensor_normal, ((5, 4, 3),), {"n_components": 4}, "n_components=4"),
        (make_tensor_normal, ((5, 4),), {"precisions": [np.eye(5)]}, "precisions"),
        (make_tensor_normal, ((5, 4),), {"precisions": [np.eye(5), np.eye(3)]}, "precisions"),
    ],
)
def test_what_does_not_fit_is_named(make, arguments, named, message):
    with pytest.raises(ValueError, match=message):
        make(*arguments, **named)
