"""Charts as SVG: a `frame` with two axes (`scales`), and its content.

Matplotlib does not draw them, because a report must work without extras. Its SVG also has the colours in the elements,
so that the page's dark mode cannot set them, no labels for screen readers, and three times the size (1500 dots).
"""
