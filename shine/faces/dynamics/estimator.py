"""`SymbolicDynamics`: equations of motion from trajectories."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from shine.base.errors import DataError, InterruptedFitWarning
from shine.base.typing import Floats
from shine.data.columns.numbers import numbers
from shine.data.trajectory_tables import Names, trajectories
from shine.faces.estimators.base import complete, portable_parameters
from shine.faces.estimators.parameters import (
    FREE,
    check_known,
    check_parameters,
    checked_index,
    checked_seed,
    checked_settings,
    checked_threads,
    words_of,
)
from shine.lang.forms.names import listed
from shine.lang.forms.synonyms import keywords_checked
from shine.search.problem import DEFAULT_PRIMITIVES

if TYPE_CHECKING:
    from shine.data.trajectories import Trajectories
    from shine.lang.forms.rounding import Precision
    from shine.lang.vocabulary import PrimitiveSource
    from shine.search.dynamics.result import SystemFront
    from shine.search.dynamics.system import SystemModel

Controls = Any
"""Values of the controls at the times, a function of the time, headings, or a list with one for each run."""


class SymbolicDynamics(BaseEstimator):
    """An estimator that finds the differential equations ``x' = f(x, u, t)`` of trajectories.

    Formulas of any form for the rate of each state are joined to systems; these are integrated along the readings, and
    the one with the shortest description of the trajectories is chosen.

    Parameters
    ----------
    kind : {"ode", "map"}
        Whether to find rates, ``x' = f(x, u, t)``, or the states a step later, ``x[k+1] = f(x[k], u[k], k)``. The times
        of a map are whole steps apart, and those without readings may be left out.
    lags : int
        Steps back whose states a map may use, too, as ``x_lag1``, ``x_lag2``, ...
    order : {1, 2}
        2 for positions alone: ``x'' = f(x, x_dot, u, t)``, where ``x_dot`` is the rate of x, which nobody read.
    autonomous : bool
        Whether rates depend on states and controls alone, and not on the time itself.
    template : str, optional
        Known parts, an equation a state: ``"x' = v; v' = f(x) - k[run]*v"``. Unknown functions are searched for; other
        names are constants, with ``[run]`` one for each run. States without an equation are free.
    population_size, primitives, max_size, max_depth, parsimony, settings, n_jobs, random_state, verbose, callbacks
        As of `shine.SymbolicRegressor`, for the search for each rate.
    max_time : float, optional
        Most seconds of a fit; None for no limit.

    Attributes
    ----------
    best_ : SystemModel
        The chosen system.
    front_ : SystemFront
        Systems by complexity and error of their rollouts.
    equations_ : dict of str to DataFrame
        The formulas found for the rate of each state, by its name, before any rollout.
    states_, controls_ : list of str
        Names in formulas.
    trajectories_ : Trajectories
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
        autonomous: bool = True,
        template: str | None = None,
        population_size: int = 1000,
        primitives: Sequence[PrimitiveSource] = DEFAULT_PRIMITIVES,
        max_size: int = 30,
        max_depth: int = 10,
        max_time: float | None = 60.0,
        parsimony: float = 0.02,
        settings: Mapping[str, Any] | None = None,
        n_jobs: int | None = -1,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = (),
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self.__dict__.update(given)

    _began: float

    def set_params(self, **params: Any) -> Self:
        """Set parameters (see `sklearn.base.BaseEstimator.set_params`); a `ValueError` names an unknown one."""
        check_known(type(self).__name__, params, self._get_param_names())
        super().set_params(**params)
        return self

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
    ) -> Self:
        """Search for the equations of motion; Ctrl-C ends the search, keeps what it found, and warns.

        Parameters
        ----------
        x : array-like or data frame of shape (n_times, n_states), or a list of them
            A list has a run in each. NaN where a state was not read.
        t : float, str, array-like of shape (n_times,), or a list of them
            The step of time, the heading of a column of `x`, or times, which must increase within each run.
        u : array-like of shape (n_times, n_controls), function, str or list of str, or a list of arrays, optional
            Controls at the times; a function of the time; or headings of columns of `x`.
        run : str or array-like of shape (n_times,), optional
            Heading of the column of `x` that labels the runs, or the labels.
        sigma : float, or sequence or mapping of floats, optional
            Known standard deviation of the readings' noise, of all states or of each; estimated by default.
        states, controls : sequence of str, optional
            Names of the columns of arrays; ``x0, x1, ...`` and ``u`` or ``u0, u1, ...`` by default.

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
        from shine.faces.estimators.fit_searches import reporter
        from shine.faces.keywords import settings_from
        from shine.search.dynamics.run import find_dynamics
        from shine.search.dynamics.settings import DynamicsSettings
        from shine.search.evolution.observers import Observers

        parameters = self.get_params(deep=False)
        check_parameters(parameters)
        others = checked_settings(self.settings, parameters)
        search = settings_from(
            primitives=self.primitives,
            seconds=self.max_time,
            threads=checked_threads(self.n_jobs),
            seed=checked_seed(self.random_state),
            words=words_of(others),
            **others,
        )
        names, continuous = Names(states, controls), self.kind == "ode"
        readings = trajectories(x, t, u, run=run, sigma=sigma, names=names, continuous=continuous)
        with reporter(self.callbacks, self.verbose, "", search.stop) as report:
            observers = Observers(report, began=self._began)
            form: Any = {
                "kind": str(self.kind),
                "lags": int(self.lags),
                "order": int(self.order),
                "template": self.template or "",
            }
            result = find_dynamics(readings, DynamicsSettings(search, bool(self.autonomous), **form), observers)
        self.front_: SystemFront = result.front
        self.result_ = result
        self.trajectories_: Trajectories = readings
        self.states_, self.controls_ = list(readings.states), list(readings.controls)
        self.n_features_in_ = len(readings.states)
        self.seconds_, self.stopped_by_ = result.seconds, result.stopped_by
        if self.stopped_by_ == "interrupted":
            message = "the fit was interrupted, and has kept the best systems so far"
            warnings.warn(message, InterruptedFitWarning, stacklevel=3)  # where fit was called
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "front_")

    def _model(self, index: int | None = None) -> SystemModel:
        """A system of the front; the chosen one by default."""
        check_is_fitted(self)
        return self.front_.best if index is None else self.front_[checked_index(index, self.front_)]

    def _of_run(self, index: int | None, run: Any) -> SystemModel:
        """A system with the constants of a run, if they depend on it."""
        from shine.faces.dynamics.scoring import run_number

        model = self._model(index)
        return model.of_run(run_number(model, run))

    @property
    def best_(self) -> SystemModel:
        """The chosen system."""
        return self._model()

    @property
    def equations_(self) -> dict[str, Any]:
        """The formulas found for the rate of each state, as tables by its name (see `Front.to_frame`)."""
        from shine.faces.estimators.fitted import equations

        check_is_fitted(self)
        return {state: equations(front) for state, front in zip(self.states_, self.result_.equations, strict=True)}

    def predict(
        self, x: Any, u: Controls = None, t: Any = None, *, run: Any = None, index: int | None = None
    ) -> Floats:
        """Rates of the states.

        Parameters
        ----------
        x : array-like of shape (n_times, n_states), or a data frame with their headings
            Of a map with lags, consecutive steps. For ``order=2`` positions, then rates.
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
            Second derivatives for ``order=2``; NaN before the lags of a map.
        """
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
        x0 : array-like of shape (n_states,), or mapping by state
            States at the first of the times. With lags those of ``lags + 1`` steps, the oldest first, and for
            ``order=2`` positions and rates: two rows or more, or a mapping to lists.
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

        model = self._of_run(index, run)
        start = start_values(model, self.states_, x0)
        found = model.simulate(start, numbers(np.asarray(t), "t", 1), u, return_std=return_std)
        read = slice(model.n_read)
        return tuple(each[:, read] for each in found) if return_std else found[:, read]

    def score(self, x: Any, t: Any = 1.0, u: Controls = None, *, run: Any = None, index: int | None = None) -> float:
        """R² of rollouts from the first time of each run at which all states were read, mean over the states.

        Parameters
        ----------
        x, t, u, run
            As of `fit`.
        index : int, optional
            Position in the front; the chosen system by default.

        Returns
        -------
        float
            At most 1; -inf if the states explode.
        """
        model = self._model(index)
        clock = None if isinstance(t, str) else self.trajectories_.time
        from shine.faces.dynamics.scoring import rollout_score

        names = Names(self.trajectories_.headings, self.controls_ or None, clock)
        readings = trajectories(x, t, u, run=run, names=names, continuous=False)
        if list(readings.states) != self.states_:
            raise DataError(f"x has the states {listed(readings.states)}; the system has {listed(self.states_)}")
        return rollout_score(model, readings)

    def conf_int(self, level: float = 0.95, *, index: int | None = None) -> dict[str, tuple[float, float]]:
        """Intervals of the constants, by state and place: ``x'[0]`` is the first number in the rate of x."""
        return self._model(index).conf_int(level)

    def conserved(self, *, index: int | None = None) -> list[Any]:
        """Sums of simple terms of the states that the motion leaves as they are, with `formula` and `drift`."""
        from shine.search.dynamics.conserved import conserved_quantities

        return conserved_quantities(self._model(index), self.trajectories_)

    def next_experiment(self, box: Mapping[str, Any] | None = None, times: Any = None, u: Controls = None) -> Any:
        """The initial state from which the systems that the data hardly tell apart move apart most.

        Parameters
        ----------
        box : mapping of str to float or (float, float), optional
            The value of each state, or its limits; wide limits by default.
        times : array-like of shape (n_times,), optional
            Of the experiment; by default as long as the longest run.
        u : array-like of shape (n_times, n_controls), or function of the time, optional

        Returns
        -------
        NextExperiment
            `start`, the initial state; `distance`, how far apart the rollouts of the `rivals` are, in units of the
            noise; their `trajectories`, of shape (n_rivals, n_times, n_states).

        Raises
        ------
        DataError
            If the box is invalid, or the data leave one system only.
        """
        check_is_fitted(self)
        return self.front_.next_experiment(box, times, u)

    def sympy(self, index: int | None = None, *, run: Any = None) -> list[Any]:
        """The equations as SymPy's `Eq`, each state a function of the time (see `export`)."""
        from shine.faces.dynamics.forms import system_of
        from shine.formats.write.systems.mathematics import sympy_equations

        return sympy_equations(system_of(self._of_run(index, run)))

    def latex(self, index: int | None = None, *, run: Any = None, precision: Precision = None) -> str:
        """The equations as an `aligned` block of LaTeX (see `export`)."""
        return self.export("latex", run=run, index=index, precision=precision)

    def export(
        self, to: str, name: str = "f", *, run: Any = None, index: int | None = None, precision: Precision = None
    ) -> str:
        """The right-hand side in another language, and a program that integrates it.

        Parameters
        ----------
        to : {"python", "c", "julia", "sympy", "latex"}
        name : str
            Name of the right-hand side.
        run : optional
            As of `predict`.
        index : int, optional
            Position in the front; the chosen system by default.
        precision : int, "exact" or None
            Significant digits of constants; by default all in programs, and in LaTeX those that the data support.
        """
        from shine.faces.dynamics.forms import exported

        return exported(self._of_run(index, run), to, name, precision=precision)

    def plot(self, kind: str = "trajectories", *, index: int | None = None, ax: Any = None) -> Any:
        """Draw a system beside the readings of the fit, with Matplotlib.

        Parameters
        ----------
        kind : {"trajectories", "phase", "residuals"}
            States over time; the second state over the first, or rates over the state if there is only one; readings
            less rollouts over time.
        index : int, optional
            Position in the front; the chosen system by default.
        ax : matplotlib.axes.Axes, or several, optional
            One for each state, or one for "phase"; those of a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes, or ndarray of them
        """
        from shine.faces.dynamics.drawing import plotted

        return plotted(self._model(index), self.trajectories_, kind, ax)

    def _states(self, x: Any) -> Floats:
        """Values of the states, from a table with their headings or an array."""
        from shine.faces.dynamics.scoring import state_values

        return state_values(self._model(), self.trajectories_.headings, x)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **portable_parameters(self.primitives, ())}

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters before `fit`, and the table of systems after it."""
        if not self.__sklearn_is_fitted__():
            return str(super().__repr__(N_CHAR_MAX))
        return f"{type(self).__name__}, {len(self.front_)} systems\n{self.result_!r}"

    @property
    def _repr_html_(self) -> Callable[[], str]:
        if not self.__sklearn_is_fitted__():
            return super()._repr_html_
        from shine.faces.dynamics.forms import notebook_html

        return lambda: notebook_html(self.front_)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        if not self.__sklearn_is_fitted__():
            return dict(super()._repr_mimebundle_(**kwargs))
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


SymbolicDynamics.__init__ = keywords_checked(SymbolicDynamics.__init__, FREE)  # type: ignore[method-assign]
