"""Observers of a running search."""
