"""One file for each search, named by the formulas it looks for; `shine.search.seeding.search_table` says when each
runs."""
