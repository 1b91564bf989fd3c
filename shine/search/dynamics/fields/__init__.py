"""Partial differential equations from fields on regular grids."""
