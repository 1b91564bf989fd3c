"""Formulas and programs as compiled callables."""
