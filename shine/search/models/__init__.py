"""Models and fronts: formulas with their measures, their uncertainty and their displays."""
