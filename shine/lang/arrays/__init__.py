"""Array formulas: the restricted language with vectors, their elements, and reductions over an index."""
