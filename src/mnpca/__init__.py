"""PCA for correlated noise: a low-rank signal and two sparse noise networks from one matrix."""

__version__ = "0.1.0"

__all__ = ["__version__"]
