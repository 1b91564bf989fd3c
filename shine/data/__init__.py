"""Data sets, and the files and recipes that they come from."""
