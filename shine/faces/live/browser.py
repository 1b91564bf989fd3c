"""Opening the page in the user's browser."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path


@contextmanager
def opened(url: str) -> Iterator[bool]:
    """Open an address that nobody else may know; tells whether there is a browser.

    Other users see the arguments of programs, so the browser gets the name of a file that only this user can read, and
    that leads to the address. It is deleted in the end.

    Parameters
    ----------
    url : str
    """
    descriptor, name = tempfile.mkstemp(".html", "shine-live-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(
                f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={escape(url)}"><title>Shine</title>'
            )
        yield webbrowser.open(Path(name).as_uri())
    finally:
        with suppress(OSError):
            os.unlink(name)
