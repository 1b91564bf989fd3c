"""A search with a template: its seeding, its end, and what an observer sees."""
