"""Functions of Python and NumPy as primitives: the known ones are recognised, others translated from their source."""
