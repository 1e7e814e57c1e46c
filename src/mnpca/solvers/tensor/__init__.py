"""Arrays with any number of axes: a Tucker signal and a noise precision for every axis."""

from mnpca.solvers.tensor.fit import TensorFit, fit_tensor

__all__ = ["TensorFit", "fit_tensor"]
