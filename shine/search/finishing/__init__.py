"""The end of a search: from individuals to the front and the choice."""
