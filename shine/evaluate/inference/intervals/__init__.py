"""Intervals of constants and bands of predictions."""
