"""The common scale of the two precisions."""

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose

from mnpca.model.sparse import logdet, normalize_gauge


def test_the_row_precision_gets_determinant_one_and_the_product_stays():
    rng = np.random.default_rng(0)
    pair = []
    for size in (4, 6):
        root = rng.normal(size=(size, size))
        pair.append(sp.csr_array(root @ root.T + np.eye(size)))
    row, col = normalize_gauge(*pair)
    assert abs(logdet(row)) < 1e-12
    assert abs(logdet(pair[0])) > 0.1
    assert_allclose(np.kron(row.toarray(), col.toarray()), sp.kron(*pair).toarray(), rtol=1e-12)
