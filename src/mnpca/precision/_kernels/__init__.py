"""Compiled loops of the sparse precision solver: numba only, no LAPACK, no validation.

Notation: ``S`` covariance, ``W`` working covariance, ``B[j]`` the regression of variable j on the
others, ``theta[j]`` the conditional precision of variable j. Penalties come as ``alpha`` of shape
(p, p), or of shape (1, p) when one row serves every variable; its diagonal is never read.
"""
