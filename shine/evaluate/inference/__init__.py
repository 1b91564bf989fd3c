"""How sure a formula is: its constants, its predictions, and its form."""
