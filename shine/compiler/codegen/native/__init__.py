"""Formulas and programs as native code of their own."""
