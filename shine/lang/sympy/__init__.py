"""SymPy's expressions as formulas."""
