"""Lets mkdocstrings write the reference: each docstring anew, with an entry for every parameter; mkdocs.yml names it.

Shine's docstrings say `seconds, stop_loss` once where one description holds for both. Griffe, which reads them for
mkdocstrings, takes the type and the default of the first name for all of them.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

GROUP = re.compile(r"^(\w+(?:, \w+)+)( :.*)?\n((?: +.*\n|\n(?= ))*)", re.MULTILINE)
SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", re.MULTILINE | re.DOTALL)


def separated(text: str) -> str:
    """A docstring in which no entry of its parameters or attributes has two names."""

    def entries(group: re.Match[str]) -> str:
        names, annotation, description = group.groups(default="")
        return "".join(f"{name}{annotation}\n{description}" for name in names.split(", "))

    def section(match: re.Match[str]) -> str:
        return match[1] + "\n" + "-" * len(match[1]) + "\n" + GROUP.sub(entries, match[2])

    return SECTION.sub(section, text + "\n").rstrip("\n")


class Separated(griffe.Extension):
    """Separates the entries of all docstrings before they are parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = separated(obj.docstring.value)


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """A page for the site: mkdocstrings takes the place of what `docs/tables.py` writes for those who read the file."""
    return re.sub(r"^<!-- docstring: (\S+) -->\n.*?^<!-- end -->$", r"::: \1", markdown, flags=re.MULTILINE | re.DOTALL)
