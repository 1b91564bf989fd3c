"""The next measurement: the box of points, the search for the most informative ones, and ties in a sentence."""
