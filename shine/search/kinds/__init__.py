"""The kinds of problems that a search solves: formulas, templates, objectives, classes."""
