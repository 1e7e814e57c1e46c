"""Sparse precision estimation, a small library of its own."""
