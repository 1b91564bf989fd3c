"""What formulas must keep to: limits, nesting, features, monotonicity, units."""
