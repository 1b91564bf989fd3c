"""A page that shows a search while it runs: its front, its islands, its loss; one can pause it, end it, and put
formulas in.

`visit` says what a search and its visitor know of each other, and the other files make the page: `watch` holds what one
search told, `parts` paints it with the parts of the report, `board` passes it on to open pages, `server` serves them.
"""
