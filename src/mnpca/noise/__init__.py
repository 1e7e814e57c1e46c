"""The noise of one axis: variances, scales, and the network that a score test finds."""
