"""Columns: their kinds, names and numbers."""
