"""Code of queries: a loop over rows of typed columns, with missing values."""
