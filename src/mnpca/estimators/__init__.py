"""The scikit-learn face: parameters, validation, fitted attributes. No numerics."""
