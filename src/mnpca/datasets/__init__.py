"""Synthetic data with known truth, and loaders of real data."""

from mnpca.datasets._arrays import (
    make_several_matrices,
    make_tensor_normal,
    planted_precision,
)
from mnpca.datasets._paper import make_paper_large, make_paper_small
from mnpca.datasets._precision import chain_precision, random_sparse_precision
from mnpca.datasets._real import REAL_SETS, load_real
from mnpca.datasets._swiss import make_two_swiss_rolls
from mnpca.datasets._synthetic import make_low_rank_matrix_normal, sample_matrix_normal

__all__ = [
    "REAL_SETS",
    "chain_precision",
    "load_real",
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
