"""Banks of small expressions, and the formulas that are written with them."""
