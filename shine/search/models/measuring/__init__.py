"""What to measure next: the box of points, the search for those that tell most, and ties in a sentence."""
