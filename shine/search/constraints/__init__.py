"""Constraints on formulas: limits, nesting, features, monotonicity, units.

`constraints` declares them, `compiled` compiles them for a primitive set and checks populations. For units, `units`
turns texts into dimensions, `dimension_rules` has a rule for each function, and `dimensional_analysis` computes the
dimensions of a population by them.
"""
