"""Queries of data frames: filters and projections, compiled once an expression and schema."""
