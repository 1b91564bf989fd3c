"""Readers of table files: from bytes to headings and columns of cells."""
