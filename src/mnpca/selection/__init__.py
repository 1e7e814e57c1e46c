"""Choosing penalties and rank."""
