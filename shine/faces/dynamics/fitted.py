"""What a fitted `SymbolicDynamics` tells: its systems as text, programs, drawings; intervals; the next experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from shine.base.errors import DataError
from shine.faces.estimators.fitted import Estimator, equations
from shine.faces.estimators.parameters import checked_index
from shine.formats.page.markup import Element, element
from shine.formats.write.systems.system import Grid, System, export_system
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.search.dynamics.fields.model import FieldModel
from shine.search.dynamics.known_parts import for_people
from shine.search.dynamics.system import SystemSummary
from shine.search.models.notebook import formula_element, page_part

if TYPE_CHECKING:
    from shine.search.dynamics.result import DynamicsResult, SystemFront
    from shine.search.dynamics.system import SystemModel


def system_of(model: SystemModel, precision: Precision = None, rounded: bool = False) -> System:
    """A system as exports take it.

    Parameters
    ----------
    model : SystemModel
        Constants by run are written as cases of the run; see `SystemModel.of_run` for one.
    precision : int, "exact" or None
        Significant digits of constants.
    rounded : bool
        Whether None means the digits that the data support, not all.
    """
    shown = tuple(model.lines("exact" if precision is None else precision)) if model.runs else ()
    model = model if model.runs else model.of_run(0)
    trees = [
        each.rounded(precision) if rounded else rounded_tree(each.tree, precision, named=False)
        for each in model.equations
    ]
    grid = None
    if isinstance(model, FieldModel):
        grid = Grid(tuple(model.features), tuple(model.counts), model.axes, model.steps[1:], model.periodic)
    kinds = model.is_map, grid, model.runs, shown, model.stiff
    return System(tuple(trees), model.states, model.controls, model.time or "t", *kinds)


def exported(
    model: SystemModel, to: str, name: str = "f", *, precision: Precision = None, file: str | None = None
) -> str:
    """A system in another form (see `shine.formats.write.systems.system.export_system`).

    Parameters
    ----------
    model : SystemModel
    to, name, file : str
    precision : int, "exact" or None
        Significant digits of constants; by default all, and in LaTeX those that the data support.
    """
    return export_system(system_of(model, precision, rounded=to == "latex"), to, name, file)


def equations_element(model: SystemModel, precision: Precision = None) -> Element:
    """A system, typeset."""
    trees = [for_people(model.equations[place].rounded(precision)) for place in model.sought]
    return element("div", [formula_element(tree, {}, left) for left, tree in zip(model.lefts, trees, strict=True)])


Controls = Any
"""Values of the controls at the times, a function of the time, headings, or a list with one for each run."""


class FittedDynamics(Estimator):
    """The answers of an estimator after `fit`."""

    front_: SystemFront
    result_: DynamicsResult
    trajectories_: Any
    states_: list[str]

    def _model(self, index: int | None = None) -> SystemModel:
        """A system of the front; the chosen one by default."""
        check_is_fitted(self)
        return self.front_.best if index is None else self.front_[checked_index(index, self.front_)]

    def _motion(self, index: int | None, what: str) -> SystemModel:
        """A system of trajectories; a `DataError` if it is one of fields."""
        model = self._model(index)
        if model.is_field:
            raise DataError(f"{what} is for trajectories, not for fields; str(model.best_) has the equations")
        return model

    def _of_run(self, index: int | None, run: Any) -> SystemModel:
        """A system to use, with the constants of a run, if they depend on it."""
        from shine.faces.dynamics.scoring import run_number

        model = self._used(index)
        return model.of_run(run_number(model, run))

    def _used(self, index: int | None) -> SystemModel:
        """A system to use; a `DataError` for the chosen one if nothing was found."""
        self._model(index)
        return self.front_.taken(index)

    @property
    def best_(self) -> SystemModel:
        """The chosen system."""
        return self._model()

    @property
    def equations_(self) -> dict[str, Any]:
        """The formulas found for the rate of each state, as tables by its name (see `Front.to_frame`)."""
        check_is_fitted(self)
        return {states: equations(front) for states, front in self.result_.equations.items()}

    def conf_int(self, level: float = 0.95, *, index: int | None = None) -> dict[str, tuple[float, float]]:
        """Intervals of the constants, by state and place: ``x'[0]`` is the first number in the rate of x."""
        return self._model(index).conf_int(level)

    def summary(self, level: float = 0.95, *, index: int | None = None) -> SystemSummary:
        """The constants with their standard errors and intervals, to print (see `conf_int`)."""
        text = self._model(index).summary(level)
        return text if self.front_.found else SystemSummary(f"{self.front_.reason}\n{text}")

    def conserved(self, *, index: int | None = None) -> list[Any]:
        """Sums of simple terms of the states that the motion leaves as they are, with `formula` and `drift`."""
        from shine.search.dynamics.conserved import conserved_quantities

        return conserved_quantities(self._motion(index, "conserved"), self.trajectories_)

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
        self._motion(None, "next_experiment")
        return self.front_.next_experiment(box, times, u)

    def sympy(self, index: int | None = None, *, run: Any = None) -> list[Any]:
        """The equations as SymPy's `Eq`, each state a function of the time (see `export`)."""
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
        to : {"python", "c", "julia", "jax", "sympy", "latex"}
        name : str
            Name of the right-hand side.
        run : optional
            As of `predict`; by default constants by run are in one program, whose users name the run.
        index : int, optional
            Position in the front; the chosen system by default.
        precision : int, "exact" or None
            Significant digits of constants; by default all in programs, and in LaTeX those that the data support.
        """
        model = self._used(index) if run is None else self._of_run(index, run)
        return exported(model, to, name, precision=precision)

    def plot(self, kind: str = "trajectories", *, index: int | None = None, ax: Any = None) -> Any:
        """Draw a system beside the readings of the fit, with Matplotlib.

        Parameters
        ----------
        kind : {"trajectories", "phase", "residuals", "vector_field"}
            States over time; the second state over the first, or rates over the state if there is only one; readings
            less rollouts over time; the rates of one state, or of two as arrows, over these, where controls have their
            mean, the time is the first one, and constants are those of the first run. Of fields, values over the first
            axis at five times, and readings less rollouts over this axis and the time; of two axes, in the middle of
            the second.
        index : int, optional
            Position in the front; the chosen system by default.
        ax : matplotlib.axes.Axes, or several, optional
            One for each state, or one for "phase" and "vector_field"; those of a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes, or ndarray of them
        """
        from shine.faces.dynamics.drawing import plotted

        return plotted(self._model(index), self.trajectories_, kind, ax)

    def _fitted_text(self) -> str:
        return f"{type(self).__name__}, {len(self.front_)} systems\n{self.result_!r}"

    def _fitted_html(self) -> str:
        front = self.front_
        return page_part(equations_element(front.best) if front.found else None, element("pre", repr(front)))
