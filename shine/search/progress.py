"""The progress of a search for people: as text, and as a bar."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from shine.lang.names import shortened
from shine.live.notebook import in_notebook
from shine.search.figures import loss_text

if TYPE_CHECKING:  # the evolution is slow to import, and the command line shows progress before it is needed
    from shine.gp.evolution import Progress
    from shine.gp.settings import StopSettings

LONGEST = 40
"""Characters of a formula in the text."""

SHAPE = "{percentage:3.0f}%|{bar:12}| {desc}"
"""Shape of a bar."""


def progress_text(progress: Progress, stop: StopSettings | None, longest: int | None = LONGEST) -> str:
    """Generation, best loss, evaluations per second, and the formula.

    The formula is last because terminals cut it.

    Parameters
    ----------
    progress : Progress
    stop : StopSettings, optional
        The limits of the search.
    longest : int, optional
        Most characters of the formula.
    """
    most = "" if stop is None or stop.generations is None else f"/{stop.generations}"
    rate = progress.evaluations / progress.seconds if progress.seconds > 0 else 0.0
    told = f"generation {progress.generation}{most}, loss {loss_text(progress.best_loss)}, {rate:,.0f} evaluations/s"
    formula = progress.formula or "-"
    return f"{told}, {formula if longest is None else shortened(formula, longest)}"


def share_over(progress: Progress, stop: StopSettings | None) -> float:
    """Share of the search that is over for certain, by its generations or its seconds; 0 if neither is limited."""
    if stop is None:
        return 0.0
    spent = ((progress.generation, stop.generations), (progress.seconds, stop.seconds))
    return min(max((done / most for done, most in spent if most), default=0.0), 1.0)


class SearchBar:
    """A bar of tqdm's in a notebook or on a terminal, which shows one search after the other.

    Parameters
    ----------
    stop : StopSettings
        The limits of the search.
    title : str
        Beginning of the text.
    """

    def __init__(self, stop: StopSettings, title: str = "") -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that ipywidgets is not installed: the bar is then text
            from tqdm.auto import tqdm
        self._stop, self._title = stop, title
        # A notebook's bar has a width of its own; the text after it is the progress.
        options: dict[str, Any] = {"bar_format": "{l_bar}{bar}" if in_notebook() else SHAPE, "dynamic_ncols": True}
        self._bar = tqdm(total=1, leave=False, desc=f"{title}looking for formulas to start from", **options)

    def enter(self, stage: str) -> None:
        """A stage begins."""
        self._bar.set_description_str(f"{self._title}{stage}")

    def generation(self, progress: Progress) -> None:
        """A generation has ended."""
        self._bar.set_description_str(f"{self._title}{progress_text(progress, self._stop)}", refresh=False)
        self._bar.update(share_over(progress, self._stop) - self._bar.n)

    def close(self) -> None:
        """The search has ended."""
        self._bar.close()
