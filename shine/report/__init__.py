"""Reports of a search: a page of HTML that stands alone, and plots with Matplotlib."""

from __future__ import annotations

from shine.report.page import report_html

__all__ = ["report_html"]
