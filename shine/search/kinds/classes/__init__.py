"""A search for the odds of classes."""
