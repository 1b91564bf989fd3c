"""`SymbolicDynamics`: equations of motion from trajectories."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from shine.base.errors import DataError, InterruptedFitWarning
from shine.base.typing import Floats
from shine.data.columns.numbers import numbers
from shine.data.trajectory_tables import Names, trajectories
from shine.faces.dynamics.fitted import Controls, FittedDynamics
from shine.faces.estimators.base import complete, portable_parameters
from shine.faces.estimators.parameters import (
    checked_seed,
    checked_settings,
    threads_beside,
    words_of,
)
from shine.lang.forms.names import listed
from shine.search.problem import DEFAULT_PRIMITIVES

if TYPE_CHECKING:
    from shine.lang.vocabulary import PrimitiveSource


class SymbolicDynamics(FittedDynamics):
    """An estimator that finds the differential equations ``x' = f(x, u, t)`` of trajectories.

    Formulas of any form for the rate of each state are joined to systems; these are integrated along the readings, and
    the one with the shortest description of the trajectories is chosen. What leaves one state and enters another, and a
    law that several states obey, have each constant once, unless the readings object.

    Parameters
    ----------
    kind : {"ode", "map", "pde"}
        Whether to find rates, ``x' = f(x, u, t)``; the states a step later, ``x[k+1] = f(x[k], u[k], k)``; or the rates
        of fields on a regular grid, ``u_t = f(u, u_x, u_xx, ...)``. The times of a map are whole steps apart, and those
        without readings may be left out.
    lags : int
        Steps back whose states a map may use, too, as ``x_lag1``, ``x_lag2``, ...
    order : {1, 2}
        2 for positions alone: ``x'' = f(x, x_dot, u, t)``, where ``x_dot`` is the rate of x, which nobody read.
    hidden : int or str
        1, or a name, for one more state, which nobody read: ``h`` by default. It is known up to a change of variable,
        and stands for the rate of a state, ``x' = h``, or its share, ``x' = x*h``.
    autonomous : bool
        Whether rates depend on states and controls alone, and not on the time itself.
    derivatives : int
        Highest derivative in space that the rates of fields may use, up to 4.
    periodic : bool
        Whether the grid of a field has no edge: its last point is followed by the first.
    template : str or mapping, optional
        Known parts, an equation a state: ``"x' = v; v' = f(x) - k[run]*v"``. Unknown functions are searched for; other
        names are constants, with ``[run]`` one for each run. Names in several equations are shared. States without an
        equation are free. A mapping has ``formula``, this text, and ``unknown`` and ``parameters`` as of
        `shine.template`: ``{"k": (0, None)}`` are bounds of k.
    conserve : str, optional
        A quantity that the motion leaves as it is, which the search keeps to: ``"S + I + R"``.
    units : mapping of str to str, optional
        Unit of each state and control, and of the time ``t``: ``{"x": "m", "t": "s"}``. Each equation agrees with them
        (see `shine.SymbolicRegressor`).
    population_size, primitives, max_size, max_depth, parsimony, settings, random_state, verbose, callbacks
        As of `shine.SymbolicRegressor`, for the search for each rate.
    max_time : float, optional
        Most seconds of a fit; None for no limit.
    n_jobs : int, optional
        Threads, as of `shine.SymbolicRegressor`.
    executor : Executor, dask.distributed.Client, str or int, optional
        Processes that search for the rates of several states at the same time: their number, an executor of PEP 3148,
        or Dask. The states share the seconds less: each search is longer.

    Attributes
    ----------
    found_ : bool
        Whether the chosen system explains the readings. If not, `front_.reason` says why nothing was found and what may
        help; `predict`, `simulate`, `export`, `sympy` and `latex` raise a `DataError` unless they are given an `index`.
    best_ : SystemModel
        The chosen system; the best of the front if nothing was found.
    front_ : SystemFront
        Systems by complexity and error of their rollouts.
    equations_ : dict of str to DataFrame
        The formulas found for the rate of each state, by its name, before any rollout.
    states_, controls_ : list of str
        Names in formulas.
    trajectories_ : Trajectories or Field
        The readings of the fit.
    seconds_ : float
    stopped_by_ : str
        See `shine.SymbolicRegressor`.

    Examples
    --------
    >>> import numpy as np, shine
    >>> t = np.linspace(0, 6, 101)
    >>> x = np.column_stack([np.cos(t), -np.sin(t)])
    >>> model = shine.SymbolicDynamics(max_time=10, random_state=0).fit(x, t)  # doctest: +SKIP
    >>> print(model.best_)  # doctest: +SKIP
    x0' = x1
    x1' = -x0
    """

    def __init__(
        self,
        *,
        kind: str = "ode",
        lags: int = 0,
        order: int = 1,
        hidden: int | str = 0,
        autonomous: bool = True,
        derivatives: int = 3,
        periodic: bool = False,
        template: str | Mapping[str, Any] | None = None,
        conserve: str | None = None,
        units: Mapping[str, str] | None = None,
        population_size: int = 1000,
        primitives: Sequence[PrimitiveSource] = DEFAULT_PRIMITIVES,
        max_size: int = 30,
        max_depth: int = 10,
        max_time: float | None = 60.0,
        parsimony: float = 0.02,
        settings: Mapping[str, Any] | None = None,
        n_jobs: int | None = -1,
        executor: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = (),
    ) -> None:
        self._store(locals())

    _began: float

    @complete
    def fit(
        self,
        x: Any,
        t: Any = 1.0,
        u: Controls = None,
        *,
        run: Any = None,
        sigma: Any = None,
        states: Sequence[str] | None = None,
        controls: Sequence[str] | None = None,
        space: Any = 1.0,
        live: bool = False,
    ) -> Self:
        """Search for the equations of motion; Ctrl-C ends the search, keeps what it found, and warns.

        Parameters
        ----------
        x : array-like or data frame of shape (n_times, n_states), or a list of them
            A list has a run in each. NaN where a state was not read. A field has the shape (n_times, n_points) or
            (n_times, n_points, n_points2); several are a mapping by name.
        t : float, str, array-like of shape (n_times,), or a list of them
            The step of time, the heading of a column of `x`, or times, which must increase within each run.
        u : array-like of shape (n_times, n_controls), function, str or list of str, or a list of arrays, optional
            Controls at the times; a function of the time, which is also asked between them; or headings of columns of
            `x`.
        run : str or array-like of shape (n_times,), optional
            Heading of the column of `x` that labels the runs, or the labels.
        sigma : float, or sequence or mapping of floats, optional
            Known standard deviation of the readings' noise, of all states or of each; estimated by default.
        states, controls : sequence of str, optional
            Names of the columns of arrays; ``x0, x1, ...`` and ``u`` or ``u0, u1, ...`` by default. Of a data frame,
            `states` are the headings of the columns that are states, all by default. A field is ``u``.
        space : float, array-like of shape (n_points,), or a sequence of them
            Step of a field's grid, or its coordinates, along all axes or each.
        live : bool
            Whether to show the searches on a page (see `shine.SymbolicRegressor.fit`), which ends as the report.

        Returns
        -------
        self

        Warns
        -----
        SamplingWarning
            If a state swings too fast for the times of its readings.
        InterruptedFitWarning
            If Ctrl-C ended the search.

        Raises
        ------
        DataError
            If the readings cannot be used (see `shine.data.trajectory_tables.trajectories`).
        ValueError, TypeError, UnsupportedSyntaxError
            If a parameter is invalid.
        """
        # Slow to import, and only a fit needs them.
        from shine.base.parallel import opened
        from shine.faces.dynamics.report import report_parts
        from shine.faces.dynamics.scoring import with_inputs
        from shine.faces.estimators.fit_searches import reporter
        from shine.faces.keywords import settings_from
        from shine.faces.live.notebook import live_page
        from shine.search.dynamics.run import find_dynamics
        from shine.search.dynamics.settings import DynamicsSettings, hidden_name
        from shine.search.evolution.observers import Observers
        from shine.search.run import Several

        parameters = self.get_params(deep=False)
        others = checked_settings(self.settings, parameters)
        search = settings_from(
            primitives=self.primitives,
            seconds=self.max_time,
            threads=threads_beside(self.executor, self.n_jobs),
            seed=checked_seed(self.random_state),
            words=words_of(others),
            **others,
        )
        readings: Any
        if self.kind == "pde":
            given = {"u": u, "run": run, "sigma": sigma, "controls": controls, "template": self.template or None}
            given["conserve"] = self.conserve or None
            readings = self._field(x, t, space, states, given)
        else:
            names, continuous = Names(states, controls), self.kind == "ode"
            readings = trajectories(x, t, u, run=run, sigma=sigma, names=names, continuous=continuous)
            readings = with_inputs(readings, u) if callable(u) and continuous else readings
        name = type(self).__name__
        with (
            live_page(live, name, "rate") as page,
            reporter(self.callbacks, self.verbose, "", search.stop) as report,
            opened(self.executor) as pool,
        ):
            followed = Observers(report) if page is None else Observers(Several((report, page)), page.watch())
            observers = replace(followed, began=self._began, pool=pool)
            form: Any = {
                "kind": str(self.kind),
                "lags": int(self.lags),
                "order": int(self.order),
                "hidden": hidden_name(self.hidden),
                "derivatives": int(self.derivatives),
                "template": "" if self.template is None else self.template,
                "conserve": (self.conserve or "").strip(),
                "units": {} if self.units is None else self.units,
            }
            wanted = DynamicsSettings(search, bool(self.autonomous), **form)
            if self.kind == "pde":
                from shine.search.dynamics.fields.run import find_fields

                result = find_fields(readings, wanted, observers)
            else:
                result = find_dynamics(readings, wanted, observers)
            if page is not None:
                page.reports(report_parts(result.front, readings, name, units=self.units))
        self.front_, self.found_ = result.front, result.front.found
        self.result_ = result
        self.trajectories_ = readings
        self.states_ = list(readings.states)
        self.controls_ = [] if self.kind == "pde" else list(readings.controls)
        self.n_features_in_ = len(readings.states)
        self.seconds_, self.stopped_by_ = result.seconds, result.stopped_by
        if self.stopped_by_ == "interrupted":
            message = "the fit was interrupted, and has kept the best systems so far"
            warnings.warn(message, InterruptedFitWarning, stacklevel=3)  # where fit was called
        return self

    def predict(
        self, x: Any, u: Controls = None, t: Any = None, *, run: Any = None, index: int | None = None
    ) -> Floats:
        """Rates of the states.

        Parameters
        ----------
        x : array-like of shape (n_times, n_states), or a data frame with their headings
            Of a map with lags, consecutive steps. For ``order=2`` positions, then rates; a hidden state last. Fields
            as of `fit`.
        u : array-like of shape (n_times, n_controls), or function of the time, optional
        t : array-like of shape (n_times,), optional
            Needed if the time occurs in the formulas, or `u` is a function.
        run : optional
            Name or number of the run whose constants are taken, if they depend on it.
        index : int, optional
            Position in the front; the chosen system by default.

        Returns
        -------
        ndarray of shape (n_times, n_states), float64
            Second derivatives for ``order=2``; NaN before the lags of a map, and near the edges of a field.
        """
        if self._model(index).is_field:
            return self._used(index).rates(x)
        model = self._of_run(index, run)
        return model.rates(model.history(self._states(x)), u, t)[:, model.sought]

    def simulate(
        self,
        x0: Any,
        t: Any,
        u: Controls = None,
        *,
        run: Any = None,
        return_std: bool = False,
        index: int | None = None,
    ) -> Any:
        """Integrate the system.

        Parameters
        ----------
        x0 : array-like of shape (n_states,), mapping by state, or one row of a data frame
            States at the first of the times. With lags those of ``lags + 1`` steps, the oldest first, and for
            ``order=2`` positions and rates: two rows or more, or a mapping to lists. A hidden state is the last one;
            ``best_.starts`` has those that were fitted. A field has its points, on a grid with the steps of the fit;
            without `periodic`, the three points at each edge keep their values.
        t : array-like of shape (n_times,)
            Increasing.
        u : array-like of shape (n_times, n_controls), or function of the time, optional
        run : optional
            As of `predict`.
        return_std : bool
            Whether to return the standard deviations that follow from the uncertainty of the constants, too.
        index : int, optional
            Position in the front; the chosen system by default.

        Returns
        -------
        ndarray of shape (n_times, n_states), float64
            NaN from the time on at which the states explode. A pair of them with `return_std`.
        """
        from shine.faces.dynamics.scoring import start_values

        if self._model(index).is_field:
            return self._used(index).simulate(x0, t, return_std=return_std)
        model = self._of_run(index, run)
        start = start_values(model, self.states_, x0)
        found = model.simulate(start, numbers(np.asarray(t), "t", 1), u, return_std=return_std)
        read = slice(model.n_read)
        return tuple(each[:, read] for each in found) if return_std else found[:, read]

    def score(
        self,
        x: Any,
        t: Any = 1.0,
        u: Controls = None,
        *,
        run: Any = None,
        index: int | None = None,
        space: Any = 1.0,
    ) -> float:
        """R² of rollouts from the first time of each run at which all states were read, mean over the states.

        For fields, that of the weak form: averages of the rates over patches.

        Parameters
        ----------
        x, t, u, run, space
            As of `fit`.
        index : int, optional
            Position in the front; the chosen system by default.

        Returns
        -------
        float
            At most 1; -inf if the states explode.
        """
        model: Any = self._model(index)
        if model.is_field:
            return float(model.score(self._field(x, t, space, None, {"u": u, "run": run})))
        clock = None if isinstance(t, str) else self.trajectories_.time
        from shine.faces.dynamics.scoring import rollout_score, with_inputs

        names = Names(self.trajectories_.headings, self.controls_ or None, clock)
        readings = trajectories(x, t, u, run=run, names=names, continuous=False)
        readings = with_inputs(readings, u) if callable(u) and self.kind == "ode" else readings
        if list(readings.states) != self.states_:
            raise DataError(f"x has the states {listed(readings.states)}; the system has {listed(self.states_)}")
        return rollout_score(model, readings)

    def _field(self, x: Any, t: Any, space: Any, states: Sequence[str] | None, given: Mapping[str, Any]) -> Any:
        """Checked fields; a `DataError` if something else is given that they do not have."""
        from shine.data.fields import field_of

        if taken := [name for name, value in given.items() if value is not None]:
            raise DataError(f"a field has no {taken[0]}; leave it out")
        if not self.autonomous:
            raise DataError("rates of fields do not depend on the time; leave autonomous=False out")
        return field_of(x, t, space, states, bool(self.periodic))

    def _states(self, x: Any) -> Floats:
        """Values of the states, from a table with their headings or an array."""
        from shine.faces.dynamics.scoring import state_values

        return state_values(self._model(), self.trajectories_.headings, x)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **portable_parameters(self.primitives, ())}
