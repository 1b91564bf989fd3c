"""Templates: laws of which a part is known, with unknown functions that a search finds and parameters that it fits."""
