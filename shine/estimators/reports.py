"""Reports of a running search: callbacks, and lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shine.gp.evolution import Progress

Callback = Callable[[Progress], object]


def reporter(callbacks: Callback | Iterable[Callback] | None, verbose: int, title: str) -> Callable[[Progress], bool]:
    """A function that receives the progress of every generation and returns whether to stop.

    Parameters
    ----------
    callbacks : callable, or several, optional
        All are called with each `Progress`; one that returns True stops the search.
    verbose : int
        1 prints a line whenever the loss has fallen, 2 in every generation.
    title : str
        Beginning of each line.
    """
    several = (callbacks,) if callable(callbacks) else tuple(callbacks or ())
    least = float("inf")

    def report(progress: Progress) -> bool:
        nonlocal least
        if verbose and (progress.best_loss < least or verbose > 1):
            print(_line(title, progress), flush=True)
        least = min(least, progress.best_loss)
        # A list, because all are called, also those after the one that stops the search.
        return True in [callback(progress) for callback in several]

    return report


def _line(title: str, progress: Progress) -> str:
    best = str(progress.front.tree(len(progress.front) - 1)) if len(progress.front) else "-"
    return (
        f"{title}generation {progress.generation:>4}  {progress.seconds:>7.1f} s  "
        f"loss {progress.best_loss:<10.4g}  {best}"
    )
