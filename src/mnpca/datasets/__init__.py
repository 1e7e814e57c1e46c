"""Synthetic data with known truth."""

from mnpca.datasets._arrays import make_several_matrices, make_tensor_normal
from mnpca.datasets._matrices import (
    make_low_rank_matrix_normal,
    make_paper_large,
    make_paper_small,
    make_two_swiss_rolls,
)
from mnpca.datasets._noise import (
    chain_precision,
    planted_precision,
    random_sparse_precision,
    sample_matrix_normal,
)

__all__ = [
    "chain_precision",
    "make_low_rank_matrix_normal",
    "make_paper_large",
    "make_paper_small",
    "make_several_matrices",
    "make_tensor_normal",
    "make_two_swiss_rolls",
    "planted_precision",
    "random_sparse_precision",
    "sample_matrix_normal",
]
