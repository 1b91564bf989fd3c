"""The name by which package indexes know Shine; `shine` is another project there."""

from __future__ import annotations

DISTRIBUTION = "shine-gp"


def install_hint(extra: str) -> str:
    """The command that installs Shine with an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
