"""The code of losses, compiled apart from formulas and machines."""
