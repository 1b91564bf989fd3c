"""Charts as SVG: a `frame` with two axes (`scales`), and its content.

Matplotlib is an extra, and its SVG has the colours in the elements, so that the dark mode cannot set them.
"""
