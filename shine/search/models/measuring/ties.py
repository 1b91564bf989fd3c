"""Sentences about what the rows do not tell: tied formulas, with the measurement that would decide, and wide gaps."""

from __future__ import annotations

from collections.abc import Sequence

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.search.models.front import Front
from shine.search.models.measuring.box import price_of
from shine.search.models.measuring.next_measurement import ODDS, Design, box_of_models
from shine.search.models.measuring.rivals import Rivals
from shine.search.models.model import Model

LIKELY = 0.25
"""Probability from which readings are said to decide: half of what the best ones reach, as the law may be none of the
formulas."""

TOGETHER = 10
"""Readings that are asked for if one is not enough."""


def untested_text(model: Model) -> str:
    """The sentence about the values between which no row tests a formula; empty if none, or without its rows."""
    if model.basis is None or not isinstance(model.basis.rows, Dataset):
        return ""
    parts = [
        f"the {count} values of {model.headings.get(name, name)}"
        for name, count in Domain(model.basis.rows).sparse_levels(model.tree).items()
        if name not in model.categories
    ]
    return f"no row tests the formula between {' and '.join(parts)}" if parts else ""


def ties_text(front: Front) -> str:
    """The sentence about a front; empty if one formula has odds of 20 to 1 against each other, or nobody knows."""
    try:
        # Rows from which nobody waits for the sentence: so many hardly leave ties.
        if not len(front) > 1 or front[0].uncertainty.rows > 10_000:
            return ""
        rivals = Rivals.of(front, front.beside)
        tied = [at for at, weight in enumerate(rivals.weights) if weight * ODDS >= rivals.weights[0]]
        if len(tied) < 2:
            return ""
        box, rivals = box_of_models([*front, *front.beside], None), rivals.only(tied)
        found = [Design(rivals, each, price_of(None, each)) for each in (box, box.beyond_the_rows())]
        known = sorted(rival.index for rival in rivals.each if rival.index < len(front))
        more = sum(rival.index >= len(front) for rival in found[1].rivals.each)
        return _sentence(known, more, *found) if known and len(known) + more > 1 else ""
    except DataError:
        return ""


def _sentence(known: Sequence[int], more: int, within: Design, beyond: Design) -> str:
    """Ask for one reading within the rows, else for one beyond them, else for several; `more` are beside the front."""
    *others, last = [*map(str, known), *([f"{more} more"] if more else [])]
    names = f"formula{'s' * (len(known) > 1)} {', '.join(others)} and {last} cannot be told apart"
    told = f"{names} by these rows"
    for design in (within, beyond):
        if len(design.rivals.each) > 1 and design.there.any():
            places = design.places(1)
            one, several = design.information_at(places), design.information_at(places * TOGETHER)
            if one.decides >= LIKELY:
                share = f"decides with a probability of {one.decides:.0%}"
                return f"{names} {_where(design)}; one measurement at {one.places[0]} {share}"
            likely = "decide" if several.decides >= LIKELY else "hardly decide"
            share = f"{likely} (probability {several.decides:.0%})"
            told = f"{names} by these rows; {TOGETHER} measurements at {one.places[0]} {share}"
    return told


def _where(design: Design) -> str:
    """The side of the box where no reading tells the formulas apart."""
    axes, values = design.box.axes, design.values
    # Share of the missing information below which a reading does not tell formulas apart, and of the box that a range
    # of such readings has to be worth telling
    loud = design.scores() >= 0.1 * design.rivals.missing
    sides = []
    for at in design.free:
        if axes[at].labels or not loud.any():
            continue
        low, high = axes[at].low, axes[at].high
        first, last = float(values[at, loud].min()), float(values[at, loud].max())
        sides += [((first - low) / (high - low), f"below {axes[at].heading} = {first:.4g}"),
                  ((high - last) / (high - low), f"above {axes[at].heading} = {last:.4g}")]  # fmt: skip
    share, words = max(sides, default=(0.0, ""))
    return words if share >= 0.15 else "by these rows"
