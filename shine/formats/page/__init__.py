"""Reports of a search: a self-contained page of HTML, and plots with Matplotlib.

A page (`page`) has `sections`, and sections have `charts` and formulas (`mathml`).
"""

from __future__ import annotations

from shine.formats.page.page import report_html

__all__ = ["report_html"]


def __dir__() -> list[str]:
    return sorted(__all__)
