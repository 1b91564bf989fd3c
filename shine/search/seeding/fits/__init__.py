"""Regressions of the seeding."""
