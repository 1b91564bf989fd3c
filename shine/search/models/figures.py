"""The figures of a formula as people read them, in ASCII so that every terminal shows them."""

from __future__ import annotations

import math
import shutil
import sys

_LEAST_DECIMALS, _MOST_DECIMALS = 4, 12
"""Decimals of a coefficient of determination: so many that two figures tell how far it is from 1."""


def loss_text(loss: float) -> str:
    """A loss with four significant digits."""
    return f"{loss:.4g}"


def r2_text(r2: float) -> str:
    """A coefficient of determination; close to 1 with as many nines as it has.

    Examples
    --------
    >>> r2_text(0.87251), r2_text(0.99999321), r2_text(1.0), r2_text(-0.25)
    ('0.8725', '0.9999932', '1', '-0.25')
    """
    if not math.isfinite(r2):
        return str(r2)
    lack = 1 - r2
    if lack <= 10.0**-_MOST_DECIMALS:
        return "1"
    decimals = min(max(1 - math.floor(math.log10(lack)), _LEAST_DECIMALS), _MOST_DECIMALS)
    # + 0.0 turns -0.0 into 0.0.
    return f"{round(r2, decimals) + 0.0:.10g}" if decimals == _LEAST_DECIMALS else f"{r2:.{decimals}f}".rstrip("0")


WEIGHTED = {
    "relative": "relative to the target",
    "log": "of the target's logarithm",
    "counts": "relative to the root of the target",
    "sigma": "relative to sigma",
}
"""Errors that losses and R2 count, under the models of the noise that weight the rows."""


def loss_name(noise: str) -> str:
    """Name of a loss under a model of the noise: it is no mean squared error if rows have weights."""
    return "weighted loss" if noise in WEIGHTED else "loss"


def noise_text(noise: str) -> str:
    """Note on a model of the noise; empty if it does not weight the rows."""
    return f"noise: {noise}; loss and r2 count errors {WEIGHTED[noise]}" if noise in WEIGHTED else ""


def figures_text(loss: float, r2: float, complexity: int, noise: str = "absolute") -> str:
    """Loss, R2 if it is known, and complexity, as a line.

    Examples
    --------
    >>> figures_text(0.00232, 0.99998, 11)
    'loss 0.00232, R2 0.99998, complexity 11'
    """
    known = [f"R2 {r2_text(r2)}"] if math.isfinite(r2) else []
    return ", ".join([f"{loss_name(noise)} {loss_text(loss)}", *known, f"complexity {complexity}"])


def screen_width() -> int | None:
    """Columns of the terminal that standard output is shown on; None for a file, a pipe or a notebook.

    Only a screen gets wrapped lines: programs search files, and notebooks wrap by themselves.
    """
    is_screen = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size().columns or None if is_screen else None
