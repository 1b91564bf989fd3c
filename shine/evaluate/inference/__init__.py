"""Uncertainty of a formula: of its constants, its predictions, and its form."""
