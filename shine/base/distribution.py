"""The name by which package indexes know Shine; `shine` is another project there."""

from __future__ import annotations

DISTRIBUTION = "shine-gp"
