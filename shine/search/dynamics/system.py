"""A system of equations of motion, with its measures: to integrate, to print, to copy to other processes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import AnyArray, Floats
from shine.compiler.arrays import dot
from shine.data.columns.numbers import numbers
from shine.evaluate.inference.quantiles import check_level, two_sided
from shine.evaluate.inference.summary import aligned
from shine.evaluate.rollouts.controls import resolved
from shine.evaluate.rollouts.system import CompiledSystem
from shine.evaluate.rollouts.unknowns import Unknowns
from shine.lang.forms.names import listed, value_text
from shine.lang.forms.rounding import Precision
from shine.lang.forms.tree import Tree
from shine.lang.wrapping import wrapped
from shine.search.dynamics.known_parts import RUN, bare, covariance_of, for_people, of_run, values_by_run
from shine.search.models.front_table import loss_text, r2_text, screen_width
from shine.search.models.model import Model

Controls = AnyArray | Callable[[float], Any] | None
"""Values of the controls at the asked times, shape (n_times, n_controls), or a function of the time."""


class SystemSummary(str):
    """A table of constants, as text."""

    __slots__ = ()
    __repr__ = str.__str__


@dataclass(frozen=True, eq=False, repr=False)
class SystemModel:
    """One system of a front.

    Parameters
    ----------
    equations : tuple of Model
        The rate of each state; the parameters of the trees are the states, the controls and the time. Their losses and
        R2 are those of the rates.
    states, controls : tuple of str
    time : str, optional
        Name of the time in the formulas; None if they do not use it.
    losses : ndarray of shape (n_states,)
        Mean squared error of the rollouts of each state from the fitted initial states, over the readings.
    variances : ndarray of shape (n_states,)
        Variance of the readings of each state; inf for a state that is never read.
    starts : ndarray of shape (n_runs, n_states)
        Fitted states at the first time of each run.
    noise : ndarray of shape (n_states,)
        Standard deviation of the readings around the rollouts.
    covariance : ndarray of shape (n_constants, n_constants), or None
        Of the constants, in the order of `constants`; None if they were not fitted by rollouts.
    nats : float
        Length of the description of the readings by this system, beside that by constants.
    rest : float, optional
        The part of these that errors and new starts take; None if it is not known.
    restarts : int
        New starts within runs: their rollouts are stretches.
    headings : tuple of str
        Headings of the states in the user's table.
    is_map : bool
        Whether the equations give the states a step later, and not rates.
    step : float
        Of the times of a map.
    lags : int
        Steps back that a map uses: the states are those of the last time, of the one before, and so on.
    order : int
        2 if the states are positions and then their rates, whose equations are the ones that were sought.
    runs : tuple of str
        Names of the runs if constants depend on them: their number is the last control then.
    hidden : int, optional
        Position of the state whose rate shows the last state, which nobody read.
    unknowns : Unknowns, optional
        Which of the constants are known or one number; by default none.
    stiff : bool
        Whether the fitted rollouts took implicit steps.
    """

    equations: tuple[Model, ...]
    states: tuple[str, ...]
    controls: tuple[str, ...]
    time: str | None
    losses: Floats
    variances: Floats
    starts: Floats
    noise: Floats
    covariance: Floats | None = None
    nats: float = math.inf
    rest: float | None = None
    restarts: int = 0
    headings: tuple[str, ...] = field(default=())
    is_map: bool = False
    step: float = 1.0
    lags: int = 0
    order: int = 1
    runs: tuple[str, ...] = ()
    hidden: int | None = None
    unknowns: Unknowns | None = None
    stiff: bool = False

    is_field: ClassVar[bool] = False
    """Whether the states are fields."""

    def of_run(self, number: int) -> SystemModel:
        """The system with the constants of one run, written out; itself if none has a name."""
        if not any(tree.assignments for tree in self.trees):
            return self
        parts = [of_run(tree, number) for tree in self.trees]
        firsts = (0, *self.compiled.ends[:-1])
        kept = [first + place for first, (_, places) in zip(firsts, parts, strict=True) for place in places]
        equations = []
        for model, (tree, _) in zip(self.equations, parts, strict=True):
            names = tuple(name for name in tree.parameters if name != RUN)
            equations.append(replace(model, tree=replace(tree, parameters=names)))
        covariance = None if self.covariance is None else covariance_of(self.covariance, kept)
        kinds: Any = {"controls": self.controls[:-1] if self.runs else self.controls, "runs": (), "unknowns": None}
        return replace(self, equations=tuple(equations), covariance=covariance, **kinds)

    @property
    def n_read(self) -> int:
        """Number of states that were read: others are lagged ones, rates, or the hidden one."""
        return (len(self.states) - (self.hidden is not None)) // (self.lags + self.order)

    @property
    def sought(self) -> range:
        """Positions of the equations that were sought."""
        first = self.n_read * (self.order - 1)
        return range(first, first + self.n_read + (self.hidden is not None))

    @property
    def unread(self) -> tuple[str, ...]:
        """States that starts have beside those that were read: rates of a second order, or the hidden one."""
        return () if self.lags else self.states[self.n_read :]

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The formulas of the rates."""
        return tuple(model.tree for model in self.equations)

    @property
    def complexity(self) -> int:
        """Sum of those of the equations that were sought."""
        models = [self.equations[place] for place in self.sought]
        return sum(replace(model, tree=bare(model.tree)).complexity for model in models)

    @property
    def error(self) -> float:
        """Squared error of the rollouts as a share of the readings' variance, mean over the states; inf if they end."""
        read = np.isfinite(self.variances)
        shares = self.losses[read] / self.variances[read]
        return float(np.add.reduce(shares) / len(shares)) if np.isfinite(shares).all() else math.inf

    @property
    def misfit(self) -> float:
        """What the front compares: new starts, which lower the error of any system, are paid for."""
        return self.error if self.rest is None or not math.isfinite(self.error) else self.rest

    @property
    def r2(self) -> float:
        """Coefficient of determination of the rollouts, mean over the states."""
        return 1 - self.error

    @cached_property
    def compiled(self) -> CompiledSystem:
        """The system as native code."""
        return CompiledSystem(self.trees, self.states, self.controls, self.time, is_map=self.is_map)

    @property
    def constants(self) -> Floats:
        """The numbers in the formulas, equation after equation, shape (n_constants,)."""
        return self.compiled.constants

    def rates(self, x: Any, u: Controls = None, t: Any = None) -> Floats:
        """Rates of the states.

        Parameters
        ----------
        x : array-like of shape (n_times, n_states)
        u : array-like of shape (n_times, n_controls) or function of the time, optional
        t : array-like of shape (n_times,), optional
            Needed if the time occurs in the formulas, or `u` is a function.

        Returns
        -------
        ndarray of shape (n_times, n_states)
        """
        states = np.atleast_2d(np.asarray(x, np.float64))
        if states.shape[1] != len(self.states):
            raise DataError(f"x has {states.shape[1]} columns; the states are {', '.join(self.states)}")
        times = None if t is None else numbers(t, "t", 1)
        if times is None and self.time is not None:
            raise DataError(f"the rates depend on {self.time}; give the times as t")
        controls = self._controls(u, np.zeros(len(states)) if times is None else times)
        columns = dict(zip((*self.states, *self.controls), (*states.T, *controls.T), strict=True))
        # A formula may have the time among its parameters though no system uses it.
        time = np.zeros(len(states)) if times is None else times
        values = [
            model.kernel(*(columns.get(name, time) for name in model.tree.parameters)) for model in self.equations
        ]
        return np.stack([np.broadcast_to(each, len(states)) for each in values], axis=1)

    @np.errstate(all="ignore")
    def simulate(self, x0: Any, t: Any, u: Controls = None, *, return_std: bool = False) -> Any:
        """Integrate from an initial state.

        Parameters
        ----------
        x0 : array-like of shape (n_states,) or (n_starts, n_states)
            At the first of the times.
        t : array-like of shape (n_times,)
            Increasing.
        u : array-like of shape (n_times, n_controls) or function of the time, optional
            Between the times, controls in an array are interpolated; a function is asked there.
        return_std : bool
            Whether to return the standard deviations that follow from the uncertainty of the constants, too.

        Returns
        -------
        ndarray of shape (..., n_times, n_states)
            NaN from the time on at which the system explodes. A pair of them with `return_std`.
        """
        times, start = np.asarray(t, np.float64), np.asarray(x0, np.float64)
        if start.shape[-1:] != (len(self.states),):
            raise DataError(f"x0 has shape {start.shape}; give one value for each of {', '.join(self.states)}")
        if times.ndim != 1 or len(times) < 1 or not (times[1:] > times[:-1]).all():
            raise DataError("t must be a list of increasing times")
        asked: Any = slice(None)
        if callable(u) and self.controls and not self.is_map and len(times) > 1:
            times, asked = resolved(times, lambda at: self._controls(u, at))
        controls = self._controls(u, times)
        if self.is_map:
            times = whole_steps(times, self.step)
        options: dict[str, Any] = {"controls": controls} if self.controls else {}
        found = self.compiled.rollout(start, times, sensitivities=return_std, tolerance=1e-9, **options)
        states = found.states[..., asked, :]
        if not return_std:
            return states
        by, covariance = found.by_constants, self.covariance
        if covariance is None or by is None or not len(covariance):
            return states, np.zeros_like(states)
        by = by[..., asked, :, :]
        across = np.stack([dot(by, row) for row in np.where(np.isfinite(covariance), covariance, 0.0)], axis=-1)
        deviations = np.sqrt(np.maximum(dot(across, by), 0.0))
        unknown = np.isinf(np.diagonal(covariance))
        return states, np.where((by[..., unknown] != 0).any(axis=-1), np.inf, deviations)

    def start_of(self, x0: Any) -> Floats:
        """All states at the first time, from those that were read.

        Parameters
        ----------
        x0 : array-like of shape (n_read,), one longer with a hidden state; with lags (lags + 1, n_read), the oldest
            first; for a second order (2, n_read), positions and rates
        """
        given, depth = np.asarray(x0, np.float64), self.lags + self.order
        if depth > 1 and self.n_read == 1 and given.shape == (depth,):
            given = given[:, None]
        shape = (depth, self.n_read) if depth > 1 else (len(self.states),)
        if given.shape != shape:
            names = listed(self.states[: shape[-1]])
            what = "the oldest first" if self.lags else "positions, then rates"
            rows = f"{depth} rows, {what}, of" if depth > 1 else "one value for each of"
            raise DataError(f"x0 has shape {given.shape}; give {rows} {names}")
        return (given[::-1] if self.lags else given).reshape(-1)

    def history(self, x: Floats) -> Floats:
        """All states at each time of consecutive readings, shape (n_times, n_states); NaN before the lags.

        Those of a second order need positions and rates, shape (n_times, 2 * n_read); others the hidden state, too.
        """
        width = self.n_read + len(self.unread)
        if x.shape[1] != width:
            raise DataError(f"x has {x.shape[1]} columns; the states are {listed(self.states[:width])}")
        before = np.full((self.lags, width), np.nan)
        return np.concatenate([np.concatenate([before[:lag], x])[: len(x)] for lag in range(self.lags + 1)], axis=1)

    def _controls(self, u: Controls, times: Floats) -> Floats:
        if not self.controls:
            return np.empty((len(times), 0))
        if u is None:
            raise DataError(f"the system has the controls {', '.join(self.controls)}; give them as u")
        try:
            values = np.array([np.atleast_1d(u(float(at))) for at in times] if callable(u) else u, np.float64)
        except (TypeError, ValueError):
            raise DataError(
                f"u must have numbers of shape {(len(times), len(self.controls))}, or be a function of the time that "
                f"returns the values of {', '.join(self.controls)}; is {value_text(u)}"
            ) from None
        values = values.reshape(len(values), -1)
        if values.shape != (len(times), len(self.controls)):
            raise DataError(f"u has shape {values.shape}; {(len(times), len(self.controls))} is needed")
        return values

    def standard_errors(self) -> Floats:
        """Standard error of each constant, shape (n_constants,); NaN if they were not fitted by rollouts."""
        if self.covariance is None:
            return np.full(len(self.constants), np.nan)
        return np.sqrt(np.diagonal(self.covariance))

    def conf_int(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Intervals of the constants that were fitted, by name: ``x'[0]`` is the first number in the equation of x."""
        reach = two_sided(check_level(level), math.inf) * self.standard_errors()
        pairs = zip((self.constants - reach).tolist(), (self.constants + reach).tolist(), strict=True)
        known = np.zeros(len(reach), np.bool_) if self.unknowns is None else self.unknowns.numbers < 0
        named = zip(self.constant_names, pairs, known.tolist(), strict=True)
        return {name: pair for name, pair, own in named if not own}

    def summary(self, level: float = 0.95) -> SystemSummary:
        """The constants that were fitted with their standard errors and intervals, as a table to print."""
        intervals = self.conf_int(level)
        errors = dict(zip(self.constant_names, self.standard_errors().tolist(), strict=True))
        values = dict(zip(self.constant_names, self.constants.tolist(), strict=True))
        ends = f"[{(1 - level) / 2:.3g}", f"{(1 + level) / 2:.3g}]"
        rows = [
            [name, *(f"{value:.6g}" for value in (values[name], errors[name], low, high))]
            for name, (low, high) in intervals.items()
        ]
        table = aligned([["", "coef", "std err", *ends], *rows]) if rows else ["no constants to be uncertain of"]
        judge = "the weak form" if self.is_field else "rollouts"
        return SystemSummary(
            "\n".join([*self.lines(), self.figures, *table, f"intervals: by standard errors of {judge}"])
        )

    @property
    def constant_names(self) -> tuple[str, ...]:
        """Names of the constants: state and place in its equation."""
        starts = (0, *self.compiled.ends[:-1])
        # Equations of further states have no constants.
        names = [f"{state}{chr(39) * self.order}" for state in self.moved] * (self.lags + self.order)
        return tuple(
            f"{name}[{place}]"
            for name, first, end in zip(names, starts, self.compiled.ends, strict=True)
            for place in range(end - first)
        )

    def lines(self, precision: Precision = None) -> list[str]:
        """The system as people write it, a line a state."""
        width = max(map(len, self.lefts))
        pairs = list(zip(self.lefts, self.sought, strict=True))
        trees = [self.equations[place].rounded(precision) for _, place in pairs]
        lines = [f"{left:<{width}} = {for_people(tree).readable}" for left, tree in zip(self.lefts, trees, strict=True)]
        for name, values in [each for tree in trees for each in values_by_run(tree, len(self.runs)).items()]:
            texts = [f"{value.readable} ({run})" for value, run in zip(values, self.runs, strict=True)]
            lines.append(f"{name}[{RUN}] = {', '.join(texts)}")
        return list(dict.fromkeys(lines))  # equations may share such a constant

    @property
    def expression(self) -> str:
        """The equations that were sought, as text."""
        trees = [self.trees[place] for place in self.sought]
        texts = [for_people(each).readable if each.assignments else str(each) for each in trees]
        return "; ".join(f"{left} = {text}" for left, text in zip(self.lefts, texts, strict=True))

    @property
    def lefts(self) -> list[str]:
        """Left sides of the equations that were sought: rates, second derivatives, or the states a step later."""
        ending = "[k+1]" if self.is_map else "'" * self.order
        return [f"{state}{ending}" for state in self.moved]

    @property
    def moved(self) -> tuple[str, ...]:
        """The states of the equations that were sought: those that were read, and the hidden one."""
        return self.states[: len(self.sought)]

    @property
    def figures(self) -> str:
        """Error of the rollouts, R2 and complexity, as a line."""
        anew = f" of rollouts with {self.restarts} new starts" if self.restarts else ""
        return f"error {loss_text(self.error)}{anew}, r2 {r2_text(self.r2)}, complexity {self.complexity}"

    def __str__(self) -> str:
        width = screen_width()
        lines = [part for line in self.lines() for part in wrapped(line, width, "    ")]
        return "\n".join([*lines, *wrapped(self.figures, width)])

    def __repr__(self) -> str:
        return f"SystemModel({'; '.join(self.lines())!r}, error={loss_text(self.error)}, complexity={self.complexity})"

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code cannot be copied to another process.
        return {name: value for name, value in self.__dict__.items() if name != "compiled"}

    def __deepcopy__(self, memo: object) -> SystemModel:
        return self


def whole_steps(times: Floats, step: float) -> Floats:
    """Numbers of steps since the first of the times of a map; a `DataError` if they are not whole."""
    numbers = (times - times[0]) / step
    whole = np.round(numbers)
    # Share of a step by which the times of a map may miss whole steps.
    if np.abs(numbers - whole).max() > 1e-6 * max(float(whole[-1]), 1.0):
        raise DataError(
            f"the times are not whole steps of {step:.6g} apart, as a map needs; give the number of each step"
        )
    return whole


def digits_of(constants: Floats, errors: Floats) -> int | None:
    """Digits of constants that their standard errors leave, and one more; None if no error is known."""
    known = (errors > 0) & np.isfinite(errors) & (constants != 0)
    if not known.any():
        return None
    ratios = np.abs(constants[known] / errors[known])
    return min(max(math.ceil(math.log10(max(float(ratios.max()), 1.0))) + 1, 2), 17)
