"""A file for each family of searches; `shine.search.seeding.search_table` says when each runs."""
