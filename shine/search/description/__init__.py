"""Description lengths of formulas and their numbers."""
