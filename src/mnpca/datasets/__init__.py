"""Synthetic data with known truth, and loaders of real data."""
