"""A whole search: data in, the Pareto front of models out."""
