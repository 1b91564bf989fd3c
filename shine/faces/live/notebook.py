"""The live page of a search in Python: in the output of a notebook's cell, or as an address to open."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from shine.lang.forms.names import value_text

if TYPE_CHECKING:  # the page is slow to import, and few searches need it
    from shine.faces.live.view import Live

HEIGHT = 760
"""Pixels of the page in a notebook."""


def in_notebook() -> bool:
    """Whether a notebook shows the output of this process."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


@contextmanager
def live_page(wanted: bool, title: str, target: str) -> Iterator[Live | None]:
    """A live page for the searches of a block; None if none is wanted.

    A notebook shows it in a frame, and keeps the final report in its place. While a cell runs, a kernel gets no
    messages from widgets, so that only a page with a server of its own can steer the search.
    """
    if not isinstance(wanted, bool):
        raise TypeError(f"live is True or False, not {value_text(wanted)}")
    if not wanted:
        yield None
        return
    from shine.faces.live.view import Live

    page = Live(title, target)
    with page:
        handle = _displayed(page.url) if in_notebook() else None
        if handle is None:
            print(f"live page, for you alone: {page.url}", file=sys.stderr)
        yield page
    if handle is not None:
        final = page.final_page()
        handle.update({"text/html": _kept(final), "text/plain": "the live page has ended"}, raw=True)


def _displayed(url: str) -> Any:
    """Show the page below the cell; returns what changes it later."""
    from IPython.display import display

    port = urlsplit(url).port
    frame = f'<iframe src="{escape(url)}" width="100%" height="{HEIGHT}" style="border: 0"></iframe>'
    note = (
        f'<a href="{escape(url)}" target="_blank" rel="noopener">Open it in a tab</a>. If it stays empty, the kernel '
        f"runs on another machine: forward its port {port} to yours."
    )
    html = f"<div>{frame}<p>{note}</p></div>"
    show: Any = display
    return show({"text/html": html, "text/plain": f"live page: {url}"}, raw=True, display_id=True)


def _kept(page: str) -> str:
    """The final report as a part of the notebook; in a frame of its own, whose script cannot reach the notebook."""
    if not page:
        return "<p>The search has ended without a result.</p>"
    attributes = f'width="100%" height="{HEIGHT}" style="border: 0" sandbox="allow-scripts"'
    return f'<div><iframe srcdoc="{escape(page)}" {attributes}></iframe></div>'
