"""The name by which package indexes know Shine; `shine` is another project there."""

from __future__ import annotations

DISTRIBUTION = "shine-gp"

INSTALL = f"pip install '{DISTRIBUTION}["
"""Begins the command that installs Shine with an extra."""


def install_hint(extra: str) -> str:
    """The command that installs Shine with an extra."""
    return f"{INSTALL}{extra}]'"
