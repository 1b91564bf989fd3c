"""The result of a search: its front, the formula that it recommends, and the reason for its end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.lang.wrapping import wrapped
from shine.search.models.front import Front
from shine.search.models.front_table import screen_width
from shine.search.models.model import Model
from shine.search.problem.noise import NoiseEstimate

if TYPE_CHECKING:
    from shine.data.datasets.preparation import Preparation
    from shine.evaluate.inference.summary import Summary
    from shine.search.evolution.evolution import Outcome
    from shine.search.models.measuring.box import Cost, Limits
    from shine.search.models.measuring.next_measurement import NextMeasurement

STOPS = {"interrupted": "the user", "callback": "a callback or on the live page", "stagnation": "a lack of progress"}
"""Ends of a search that reached no limit, by `Result.stopped_by`."""

_LEVEL = 0.95
"""Level of the intervals of constants below a front."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of a search.

    Parameters
    ----------
    front : Front, or sequence of Model
        Pareto front: rising complexity, falling loss. Any sequence becomes a `Front`.
    best_index : int
        Position of the recommended formula in the front (see `shine.search.models.certainty.choose`).
    generations, evaluations : int
        Number of generations after the first population, and of individuals evaluated.
    seconds : float
        Duration of the search.
    seed : int
    stopped_by : {"loss", "generations", "seconds", "stagnation", "interrupted", "callback"}
    noise : NoiseEstimate, optional
        The loss that noise alone leaves, by replicates or neighbouring rows; None if the rows do not tell.
    """

    front: Front
    best_index: int
    generations: int
    evaluations: int
    seconds: float
    seed: int
    stopped_by: str
    noise: NoiseEstimate | None = None

    def __post_init__(self) -> None:
        # Any sequence of models becomes a front, which has the tables.
        if not isinstance(self.front, Front):
            object.__setattr__(self, "front", Front(tuple(self.front), self.best_index))

    @classmethod
    def of(
        cls, outcome: Outcome, front: Front, seconds: float, seed: int, noise: NoiseEstimate | None = None
    ) -> Result:
        """The result of an evolution with a front that knows the recommended formula."""
        found = outcome.generations, outcome.evaluations, seconds, seed, outcome.stopped_by
        return cls(front, front.best_index, *found, noise)

    @property
    def best(self) -> Model:
        """The recommended formula."""
        return self.front[self.best_index]

    def with_preparation(self, preparation: Preparation | None) -> Result:
        """The result whose formulas know how columns of the user's table became numbers; None if they held numbers."""
        if preparation is None:
            return self
        models, beside = (
            tuple(replace(model, preparation=preparation) for model in each) for each in (self.front, self.front.beside)
        )
        return replace(self, front=replace(self.front, models=models, beside=beside))

    @property
    def reason(self) -> str:
        """Reason for the recommendation; empty if it is not known."""
        return self.front.reason

    def by_sample(self, rows: int, of: int) -> Result:
        """The result that says that the seconds were enough for some of the rows only, if they are not all."""
        if rows == of:
            return self
        note = f"{self.reason}; by a sample of {rows} of {of} rows; more seconds allow all"
        return replace(self, front=replace(self.front, reason=note))

    def predict(self, X: ArrayLike, return_std: bool | Literal["mean", "prediction"] = False) -> Any:
        """Values of the recommended formula (see `Model.predict`)."""
        return self.best.predict(X, return_std)

    def predict_file(self, data: Any, out: str | Path, *, index: int | None = None, **options: Any) -> int:
        """Write the predictions for each row of some data to a file, block by block; returns the number of rows.

        Parameters
        ----------
        data : path, or what `shine.data.open_dataset` streams
        out : path
            Its name ends in .parquet, .feather, .arrow, .npy or .csv. It is complete or not there.
        index : int, optional
            Position of the formula in the front; the recommended one by default.
        **options
            ``interval=0.95`` adds the ends of intervals, of the `kind` "prediction" or "mean"; `where` chooses rows.

        Raises
        ------
        DataError
            If the data lack a column or cannot be read, or the file cannot be written.
        """
        from shine.search.models.file_predictions import predict_file

        model = self.best if index is None else self.front[index]
        return predict_file(model, data, out, **options)

    def predict_interval(
        self, X: ArrayLike, level: float = 0.95, kind: Literal["mean", "prediction"] = "prediction", **options: Any
    ) -> Floats:
        """Intervals of the values of the recommended formula (see `Model.predict_interval`)."""
        return self.best.predict_interval(X, level, kind, **options)

    def conf_int(self, level: float = 0.95, method: Any = None, **options: Any) -> dict[str, tuple[float, float]]:
        """Intervals of the constants of the recommended formula (see `Model.conf_int`)."""
        return self.best.conf_int(level, method, **options)

    def standard_errors(self, **options: Any) -> dict[str, float]:
        """Standard errors of the constants of the recommended formula (see `Model.standard_errors`)."""
        return self.best.standard_errors(**options)

    def correlations(self, **options: Any) -> Floats:
        """Correlations of the constants of the recommended formula (see `Model.correlations`)."""
        return self.best.correlations(**options)

    def summary(self, level: float = 0.95, method: Any = None, **options: Any) -> Summary:
        """The constants of the recommended formula with their intervals (see `Model.summary`)."""
        return self.best.summary(level, method, **options)

    def next_measurement(
        self, box: Mapping[str, Limits] | None = None, n: int = 1, cost: Cost | None = None
    ) -> NextMeasurement:
        """Points to measure next (see `Front.next_measurement`)."""
        return self.front.next_measurement(box, n, cost)

    @property
    def ending(self) -> str:
        """Duration of the search and reason for its end, as a sentence."""
        return (
            f"{self.evaluations} evaluations in {self.generations} generations and {self.seconds:.1f} s; "
            f"stopped by {STOPS.get(self.stopped_by, f'the limit of {self.stopped_by}')}"
        )

    @property
    def constants_text(self) -> str:
        """The constants of the recommended formula with their 95 % intervals, as lines; empty if there is no noise."""
        return _constants_text(self.best)

    @property
    def ties_text(self) -> str:
        """The formulas that the rows do not tell apart, and the measurement that would, in a line; empty if none."""
        from shine.search.models.measuring.ties import ties_text  # slow to import

        return ties_text(self.front)

    @property
    def untested_text(self) -> str:
        """The values between which no row tests the recommended formula, in a line; empty if none."""
        from shine.search.models.measuring.ties import untested_text  # slow to import

        return untested_text(self.best)

    def __repr__(self) -> str:
        """The table of the front, the constants, ties, and the end of the search; wrapped on a terminal."""
        lines = [line for line in (*self.constants_text.splitlines(), self.ties_text, self.ending) if line]
        return "\n".join([repr(self.front), *(part for line in lines for part in wrapped(line, screen_width()))])

    def _repr_html_(self) -> str:
        """The recommended formula above the table of the front, for notebooks."""
        return f"{self.best._repr_html_()}{self.front._repr_html_()}"

    def _repr_latex_(self) -> str:
        """The recommended formula for notebooks that typeset LaTeX."""
        return self.best._repr_latex_()

    def plot(self, kind: str = "front", X: ArrayLike | None = None, y: ArrayLike | None = None, **options: Any) -> Any:
        """Draw the front or the recommended formula with Matplotlib (see `Front.plot`)."""
        return self.front.plot(kind, X, y, **options)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The front as plain values: complexity, loss, r2, expression, best."""
        for row in self.front.rows():
            yield {name: value for name, value in row.items() if name != "score"}


USER = ("interrupted", "callback")
"""Reasons to stop that end all searches of a fit."""


class Searches:
    """One search after the other, of one fit."""

    results: list[Result]

    @property
    def stopped_by_user(self) -> bool:
        """Whether the user has ended the fit."""
        return any(result.stopped_by in USER for result in self.results)

    @property
    def stopped_by(self) -> str:
        """Reason for the end of the fit: the user's if there is one, else the last search's."""
        reasons = [result.stopped_by for result in self.results]
        return next((reason for reason in reasons if reason in USER), reasons[-1])


def _constants_text(model: Model) -> str:
    """The formula with names in place of constants, and a line with their intervals.

    Empty if it has none, or the rows do not tell them: because the model does not know its rows, or there is no noise.
    """
    from shine.evaluate.inference.inference import FAR_AWAY, NOT_DETERMINED
    from shine.evaluate.inference.summary import number_text

    try:
        known = model.uncertainty
        if not known.names or known.exact or not math.isfinite(known.scale):
            return ""
        ends = model.conf_int(_LEVEL, model.quick_method(_LEVEL))
    except DataError:
        return ""
    told = []
    for name, value, error in zip(known.names, known.values.tolist(), known.errors.tolist(), strict=True):
        low, high = (number_text(end, error) for end in ends[name])
        told.append(f"{name} = {number_text(value, error)} ({f'{low} to {high}' if error < math.inf else 'unknown'})")
    far = [f"\n    note: {note}" for note in known.notes if note.startswith((FAR_AWAY, NOT_DETERMINED))]
    return f"with 95 % intervals: {model.form().text}\n    {', '.join(told)}{''.join(far)}"
