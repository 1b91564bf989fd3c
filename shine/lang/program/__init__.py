"""Programs: formulas over values of several number types, made from the graphs of other libraries."""

from shine.moved import names_of

__getattr__ = names_of(__name__)
