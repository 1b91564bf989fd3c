"""Data sets, from files and recipes."""
