"""The next measurement: points where the formulas that the rows do not tell apart part most.

A reading would tell its expected information about the form (see `shine.evaluate.inference.evidence`), by the evidence
for each formula, the uncertainty of its constants, and the noise. Several points are found one after another, each with
what those before it are expected to tell.
If the rows leave one formula, they are where the most is to be learned of its constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats, Mask
from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.evidence import Predictions, foreseen
from shine.lang.forms.names import value_text
from shine.lang.wrapping import wrapped
from shine.search.models.certainty import CONVINCING
from shine.search.models.front_table import screen_width
from shine.search.models.measuring.box import Box, Cost, Limits, box_of, point_text, price_of
from shine.search.models.measuring.rivals import NONE, Rivals
from shine.search.models.model import Model
from shine.search.models.template_model import TemplateModel

ODDS = math.exp(CONVINCING)
"""Odds of a formula against all others from which it counts as decided."""

POINTS, ON_A_LINE = 1024, 401
"""Points of the box that are looked at: of several features, and of one."""

MOST_CORNERS = 64
"""Most corners of the box among them."""

SAME = 0.05
"""Noises by which two formulas differ at most, and share of their deviations, if a box does not tell them apart."""

CASES, DRAWS = 16, 4000
"""Cases over which the information of a second reading is averaged, and those that tell the probability to decide."""

MOST = 1000
"""Most points that are asked for at once."""


@dataclass(frozen=True, eq=False, repr=False)
class NextMeasurement:
    """Points to measure at, and what readings there would tell.

    Parameters
    ----------
    points : tuple of dict of str to value
        The value of each feature by heading. The same point may occur several times: measure there again.
    formulas : tuple of str
        The formulas that the rows do not tell apart, the most probable first.
    indices : tuple of int or None
        Their positions in the front; None for one that the front hides, as another of its complexity fits better.
    weights : ndarray of shape (n_formulas,)
        Their probabilities by the rows.
    values, deviations : ndarray of shape (n_formulas, n_points)
        What each formula predicts at the points, and the standard deviation of a reading around it.
    information : float
        Bits that the readings tell, in the mean, about which formula is right.
    missing : float
        Bits that are missing to know it: the most that they can tell.
    decides : float
        Probability that one formula has odds of 20 to 1 after the readings. It counts that the law may be none of them
        (see `shine.search.models.measuring.rivals.NONE`); a new search then finds other formulas.
    used : tuple of str
        Headings of the features that matter to these formulas.
    notes : tuple of str
        What a user should know: points beyond the rows, formulas without values.
    """

    points: tuple[dict[str, Any], ...]
    formulas: tuple[str, ...]
    indices: tuple[int | None, ...]
    weights: Floats
    values: Floats
    deviations: Floats
    information: float
    missing: float
    decides: float
    used: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def places(self) -> list[str]:
        """Each point as text, once, and how often to measure there."""
        texts = [self._point(point) for point in self.points]
        counts = {text: texts.count(text) for text in texts}
        return [text if count == 1 else f"{text} ({count} times)" for text, count in counts.items()]

    def _point(self, point: Mapping[str, Any]) -> str:
        told = self.used or tuple(point)
        return ", ".join(f"{name} = {point_text(value)}" for name, value in point.items() if name in told)

    @property
    def sentence(self) -> str:
        """Advice and its gain, as a sentence."""
        where = "measure at " + "; ".join(self.places)
        if len(self.formulas) == 1:
            return f"{where}: the rows leave one formula, and it is least tested there"
        what = "this decides" if len(self.points) == 1 else "together they decide"
        count = f"{len(self.formulas)} formulas, {self.information:.2g} of {self.missing:.2g} bits"
        if self.weights[0] >= ODDS / (1 + ODDS):
            return f"the rows speak for {self.formulas[0]} by {self.weights[0]:.1%}; to be surer, {where} ({count})"
        return f"{where}: {what} with a probability of {self.decides:.0%} ({count})"

    def plain(self) -> dict[str, Any]:
        """The same as lists and numbers, for JSON."""
        told = {name: list(each) if isinstance(each, tuple) else each for name, each in vars(self).items()}
        del told["used"]
        return {name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in told.items()}

    def __str__(self) -> str:
        """The sentence, and below it what each formula predicts at each point; wrapped on a terminal."""
        width = screen_width()
        first = {self._point(point): at for at, point in reversed([*enumerate(self.points)])}
        lines = wrapped(self.sentence, width, "    ")
        for index, formula, weight, values, deviations in zip(
            self.indices, self.formulas, self.weights, self.values, self.deviations, strict=True
        ):
            there = [_reading(values[at], deviations[at]) for at in sorted(first.values())]
            place = "" if index is None else index
            lines += wrapped(f"{weight:>6.1%}  {place:>3}  {formula}: {'; '.join(there)}", width, " " * 13)
        for note in self.notes:
            lines += wrapped(f"note: {note}", width, "    ")
        return "\n".join(lines)

    __repr__ = __str__


def next_measurement(
    models: Sequence[Model],
    box: Mapping[str, Limits] | None = None,
    n: int = 1,
    cost: Cost | None = None,
    *,
    rows: Dataset | None = None,
    beside: Sequence[Model] = (),
) -> NextMeasurement:
    """The points of a box where formulas part most (see `shine.search.models.front.Front.next_measurement`).

    Parameters
    ----------
    models : sequence of Model
        A front.
    box, n, cost
        As there.
    rows : Dataset, optional
        The rows that the models were fitted to, if they do not know them: they tell which features are whole numbers.
    beside : sequence of Model
        Formulas that the front hides.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= MOST:
        raise ValueError(f"n is {value_text(n)}; it is a number of points from 1 to {MOST}")
    rivals = Rivals.of(models, beside)
    found = box_of_models([*models, *beside], box, rows)
    design = Design(rivals, found, price_of(cost, found))
    told = design.information_at(design.places(int(n)))
    places = [rival.index for rival in design.rivals.each]
    return replace(told, indices=tuple(at if at < len(models) else None for at in places))


def box_of_models(models: Sequence[Model], box: Mapping[str, Limits] | None, rows: Dataset | None = None) -> Box:
    """The box that a user gives, completed by what models know of their rows."""
    first = models[0]
    basis = next((model.basis for model in models if model.basis is not None), None)
    rows = basis.rows if rows is None and basis is not None else rows
    ranges: dict[str, tuple[float, float]] = {}
    for model in models:
        ranges |= model.uncertainty.ranges if model.known is not None and rows is None else {}
    if rows is not None:
        ranges = dict(rows.ranges)
    groups = {}
    if isinstance(first, TemplateModel) and first.law.groups is not None:
        groups = {first.law.groups.column: dict(zip(first.groups, first.law.groups.values, strict=True))}
    needed = {name for model in models for name in model.tree.used_parameters}
    return box_of(box, first.tree.parameters, first.headings, ranges, rows, first.preparation, groups, needed)


@dataclass(eq=False)
class Design:
    """The search for the points.

    Parameters
    ----------
    rivals : Rivals
    box : Box
    price : callable
        Price of points, from their values; of shape (n_points,).
    """

    rivals: Rivals
    box: Box
    price: Callable[[Floats], Floats]

    def __post_init__(self) -> None:
        # Features that do not matter have the middle of their range.
        self._shares = _spread(self.free, len(self.box.axes))
        self.values = self.box.values(self._shares)
        self.rivals = self.rivals.only(self._everywhere())
        self.predictions, self.there = self._at(self.values)
        self.rivals = self.rivals.only(self._different())
        self.predictions, self.there = self._at(self.values)
        self.prices = self.price(self.values)

    def _everywhere(self) -> list[int]:
        """The rivals, but improbable ones that lack values: they would keep readings from a part of the box."""
        columns, count = self.box.columns(self.values), self.values.shape[1]
        lacking = [not np.isfinite(rival.at(columns, count)[0]).all() for rival in self.rivals.each]
        weights = self.rivals.weights
        return [at for at, lacks in enumerate(lacking) if not lacks or weights[at] * ODDS >= weights[0]]

    def _different(self) -> list[int]:
        """The rivals that differ somewhere in the box from each before them: no reading tells the others apart."""
        values, variances = self.predictions.values[:, self.there], self.predictions.variances[:, self.there]
        kept: list[int] = []
        for at in range(len(values)):
            apart = (values[kept] - values[at]) ** 2 / variances[kept]
            wider = np.abs(np.log(variances[kept] / variances[at]))
            if not ((apart < SAME**2) & (wider < SAME)).all(axis=1).any():
                kept.append(at)
        return kept

    @cached_property
    def _matters(self) -> list[bool]:
        used = self.rivals.used
        return [bool(used & set(axis.names)) for axis in self.box.axes]

    @property
    def free(self) -> list[int]:
        """Axes along which the formulas change; if there are none, all."""
        open_ones = [at for at, axis in enumerate(self.box.axes) if not axis.is_fixed]
        return [at for at in open_ones if self._matters[at]] or open_ones

    def _at(self, values: Floats) -> tuple[Predictions, Mask]:
        return self.rivals.at(self.box.columns(values), values.shape[1])

    def places(self, n: int) -> list[int]:
        """So many points, one after another: positions in `values`."""
        if not self.there.any():
            raise DataError("nowhere in the box do all formulas that the rows leave have a value; choose another box")
        found: list[int] = []
        for _ in range(n):
            found.append(self._nearest(self.scores(found), self.values[:, found]))
        return found

    def scores(self, before: Sequence[int] = ()) -> Floats:
        """Information of one reading for its price, in nats, at each of the points, beside those at points before.

        It is -inf where a formula has no value. Several readings of one formula keep away from each other.
        """
        chosen = self.predictions.at(np.array(before, np.int64))
        cases = foreseen(self.rivals.weights, chosen, CASES if before else 1, np.random.default_rng(0))
        told = cases.information(self.predictions)
        for at in before if len(self.rivals.each) == 1 else ():
            told = told * np.abs(self._shares - self._shares[:, [at]]).max(axis=0)
        return np.where(self.there, told / self.prices, -np.inf)

    def _nearest(self, scores: Floats, points: Floats) -> int:
        """Of the points that tell as much as the best: one chosen before, else the nearest to the rows."""
        best = float(scores.max())
        # Points whose information differs by less than this share tell the same: the one nearest to the rows is taken.
        equal = np.flatnonzero(scores >= best - 0.01 * abs(best))
        values = self.values[:, equal]
        new = (values[:, :, None] != points[:, None]).any(axis=0).all(axis=1)
        order = np.lexsort((-scores[equal], self.box.excess(values), new))
        return int(equal[order[0]])

    def information_at(self, places: Sequence[int]) -> NextMeasurement:
        """Information of readings at some of the points."""
        rivals, weights = self.rivals, self.rivals.weights
        points, chosen = self.values[:, places], self.predictions.at(np.array(places))
        cases = foreseen(weights, chosen, DRAWS, np.random.default_rng(1))
        after = np.where(cases.weights > 0, cases.weights, 1.0)
        left = -float((after * np.log(after)).sum(axis=1).mean())
        missing = rivals.missing
        used = tuple(axis.heading for axis, matters in zip(self.box.axes, self._matters, strict=True) if matters)
        return NextMeasurement(
            tuple(self.box.plain(point) for point in points.T),
            tuple(rival.model.formula() for rival in rivals.each),
            tuple(rival.index for rival in rivals.each),
            weights,
            chosen.values,
            np.sqrt(chosen.variances),
            max(missing - left, 0.0) / math.log(2),
            missing / math.log(2),
            cases.deciding(ODDS) * (1.0 if all(rival.known.exact for rival in rivals.each) else 1 - NONE),
            used,
            tuple(self._notes(points)),
        )

    def _notes(self, points: Floats) -> list[str]:
        notes = []
        for axis, own in zip(self.box.axes, points, strict=True):
            if axis.heading and axis.known is not None and (axis.excess(own) > 0).any():
                ends = " to ".join(point_text(each) for each in axis.known)
                notes.append(f"beyond the rows, whose {axis.heading} is {ends}: there, none of the formulas may hold")
        share = float(np.mean(~self.there[: POINTS if len(self.free) > 1 else ON_A_LINE]))
        if share >= 0.01:
            notes.append(f"in {share:.0%} of the box, a formula has no value; points there are left out")
        return notes


def _spread(free: Sequence[int], axes: int) -> Floats:
    """Points of the unit cube, shape (n_axes, n_points): evenly spread along free axes, and corners.

    Of several axes, they are the additive recurrence by the generalized golden ratio (Roberts 2018).
    """
    if len(free) < 2:
        count = ON_A_LINE if free else 1
        found = np.full((axes, count), 0.5)
        found[list(free)] = np.linspace(0.0, 1.0, count)
        return found
    count = len(free)
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (count + 1))
    steps = ratio ** -np.arange(1.0, count + 1)
    inner = (0.5 + np.outer(steps, np.arange(1.0, POINTS + 1))) % 1.0
    corners = min(2**count, MOST_CORNERS) if count < 60 else MOST_CORNERS
    # With many axes, the first corners and their opposites.
    bits = (np.arange(corners)[None, :] >> np.arange(min(count, 60))[:, None]) & 1
    outer = np.zeros((count, corners))
    outer[: len(bits)] = bits
    found = np.full((axes, POINTS + corners), 0.5)
    found[list(free)] = np.concatenate([inner, outer], axis=1)
    return found


def _reading(value: float, deviation: float) -> str:
    """A value and its standard deviation, with two digits of it."""
    digits = 6 if not deviation > 0 else 2 + math.floor(math.log10(max(abs(value) / deviation, 1.0)))
    return f"{value:.{min(max(digits, 2), 15)}g} ± {deviation:.2g}"
