"""The gradient machine: derivatives by the constants, and fitting them."""
