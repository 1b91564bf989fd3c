"""Trained networks as teachers: samples of what a network computes, and the formulas that a search finds for them."""
