"""Formulas and graphs of other libraries, turned into Shine's language; none of them is imported before it is used."""
