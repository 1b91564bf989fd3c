"""Genetic programming over populations that are arrays: creation, variation, selection, archive, and the loop."""
