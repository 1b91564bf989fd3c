"""The meaning of formulas: the reference evaluation in NumPy, and the value graph."""
