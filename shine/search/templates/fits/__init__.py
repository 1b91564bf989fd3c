"""Fits of the numbers in a template's individuals."""
