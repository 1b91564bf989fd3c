"""Simplification: an equal formula with fewer nodes."""
