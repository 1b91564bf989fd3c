"""Charts as SVG: a `frame` with two axes (`scales`), and what is drawn in it.

Matplotlib does not draw them: it is an extra, and its SVG has fixed colours and no links, while these charts follow the
page's dark mode and lead from a point to its row of the table.
"""
