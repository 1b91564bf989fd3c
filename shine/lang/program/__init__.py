"""Programs: formulas over values of several number types, as graphs of other libraries have them."""
