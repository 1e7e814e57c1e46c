"""The mathematics of the model as pure functions of arrays."""
