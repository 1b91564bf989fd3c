"""Programs: formulas over values of several number types, made from the graphs of other libraries."""
