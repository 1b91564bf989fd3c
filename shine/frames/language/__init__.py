"""Queries of tables: conditions and values of rows, in the restricted language with typed columns."""
