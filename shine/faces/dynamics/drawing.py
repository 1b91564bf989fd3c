"""Drawings of a system beside the readings, with Matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from shine.base.typing import Floats
from shine.formats.page.plots import check_axes, grid, named, plain
from shine.lang.forms.names import listed, value_text
from shine.search.dynamics.system import whole_steps

if TYPE_CHECKING:
    from shine.data.fields import Field
    from shine.data.trajectories import Trajectories
    from shine.search.dynamics.fields.model import FieldModel
    from shine.search.dynamics.system import SystemModel


def rollout(model: SystemModel, readings: Trajectories, number: int, fine: bool = True) -> tuple[Floats, Floats]:
    """Times and states of the system along a run, first those that were read, from its fitted start, at the times of
    the readings or at `fine` ones, to draw a curve."""
    run, model = readings.runs[number], model.of_run(number)
    if model.is_map:
        # The start is that of the first step after the lags, which may have no reading.
        steps = whole_steps(run.times, model.step)
        own = steps > model.lags
        times = np.append(run.times[0] + model.lags * model.step, run.times[own])
        controls = np.concatenate([run.controls[~own][-1:], run.controls[own]])
        found = model.simulate(model.starts[number], times, controls)[:, : model.n_read]
        states = np.full_like(run.states, np.nan)
        states[own], states[steps == model.lags] = found[1:], found[0]
        return run.times, states
    times = np.linspace(run.times[0], run.times[-1], 400) if fine else run.times  # times of a drawn rollout
    controls = np.array([np.interp(times, run.times, column) for column in run.controls.T]).T.reshape(len(times), -1)
    return times, model.simulate(model.starts[number], times, controls)


def field_rollout(model: FieldModel, field: Field) -> tuple[Floats, Floats]:
    """Readings of fields and what the system makes of the first ones, shape (n_fields, n_times, n_points): of two axes,
    the points in the middle of the second."""
    given = dict(zip(field.states, field.values[:, 0], strict=True))
    found = model.simulate(given, field.places[0])
    states = np.stack([found[state] for state in field.states] if isinstance(found, dict) else [found])
    wanted = field.values
    if wanted.ndim > 3:
        wanted, states = (each[..., each.shape[-1] // 2] for each in (wanted, states))
    return wanted, states


def plotted(model: SystemModel, readings: Trajectories | Field, kind: str, ax: Any = None) -> Any:
    """Draw a system (see `shine.SymbolicDynamics.plot`).

    Raises
    ------
    ValueError
        If there is no such drawing, or other axes are needed.
    ExportError
        If Matplotlib is not installed.
    """
    table = FIELD_DRAWINGS if model.is_field else DRAWINGS
    if not isinstance(kind, str) or kind not in table:
        raise ValueError(f"kind is {value_text(kind)}; it must be one of {', '.join(map(repr, table))}")
    draw, of_states = table[kind]
    count = len(readings.states) if of_states else 1
    axes = grid(count) if ax is None else list(ax.flat if isinstance(ax, np.ndarray) else np.atleast_1d(ax))
    for each in axes:
        check_axes(each)
    if len(axes) != count:
        raise ValueError(f"ax has {len(axes)} axes, and {count} are drawn; give {count}, or none for a new figure")
    for state, place in enumerate(axes):
        draw(model, readings, state, place)
    return axes[0] if count == 1 else np.array(axes, dtype=object)


def _trajectories(model: SystemModel, readings: Trajectories, state: int, ax: Any) -> None:
    for number, run in enumerate(readings.runs):
        colour = f"C{number % 10}"
        ax.plot(run.times, run.states[:, state], ".", color=colour, label=run.name or None)
        times, states = rollout(model, readings, number)
        ax.plot(times, states[:, state], "-", color=colour)
    named(ax, readings.time, model.states[state])


def _residuals(model: SystemModel, readings: Trajectories, state: int, ax: Any) -> None:
    for number, run in enumerate(readings.runs):
        _, states = rollout(model, readings, number, fine=False)
        ax.plot(run.times, run.states[:, state] - states[:, state], ".", color=f"C{number % 10}")
    ax.axhline(0.0, color="grey", linewidth=0.8)
    named(ax, readings.time, f"{model.states[state]}: reading less rollout")


def _phase(model: SystemModel, readings: Trajectories, state: int, ax: Any) -> None:
    for number, run in enumerate(readings.runs):
        colour = f"C{number % 10}"
        times, states = rollout(model, readings, number)
        if len(readings.states) == 1:
            if model.is_map:
                ax.plot(states[:-1, 0], states[1:, 0], ".", color=colour)
            else:
                ax.plot(states[:, 0], np.gradient(states[:, 0], times), "-", color=colour)
        else:
            ax.plot(run.states[:, 0], run.states[:, 1], ".", color=colour)
            ax.plot(states[:, 0], states[:, 1], "-", color=colour)
    left = f"{model.states[0]}[k+1]" if model.is_map else f"{model.states[0]}'"
    named(ax, model.states[0], model.states[1] if len(readings.states) > 1 else left)


def _vector_field(model: SystemModel, readings: Trajectories, state: int, ax: Any) -> None:
    """Rates over one state, or arrows over two, coloured by speed, with the rollouts; arrows of a map lead to the next
    states. Controls have their mean, the time is the first one, and constants are those of the first run."""
    names, one = model.states, len(model.states) == 1
    if len(names) > 2:
        raise ValueError(f"a vector field has one or two states, and this system {listed(names)}; draw 'phase'")
    paths = np.concatenate([rollout(model, readings, number)[1] for number in range(len(readings.runs))])
    low, high = np.nanmin(paths, axis=0), np.nanmax(paths, axis=0)
    low, high = low - 0.1 * (high - low), high + 0.1 * (high - low)
    sides = [np.linspace(*ends, 400 if one else 21) for ends in zip(low, high, strict=True)]
    places = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(names))
    controls = np.concatenate([run.controls for run in readings.runs]).mean(axis=0)[: len(model.of_run(0).controls)]
    first = np.full(len(places), readings.runs[0].times[0])
    rates = model.of_run(0).rates(places, np.tile(controls, (len(places), 1)), first)
    if one:
        ax.plot(places, rates, "-")
        ax.axline((0, 0), slope=float(model.is_map), color="grey", linewidth=0.8)  # where the state stays
        named(ax, names[0], model.lefts[0])
        return
    shares = (rates - places * model.is_map) / (high - low)
    speeds = np.hypot(*shares.T)
    arrows = (high - low) * shares / (25 * np.where(speeds > 0, speeds, 1.0))[:, None]
    ax.quiver(*places.T, *arrows.T, speeds, angles="xy", scale_units="xy", scale=1)
    for number in range(len(readings.runs)):
        ax.plot(*rollout(model, readings, number)[1].T, "-", color=f"C{number % 10}")
    named(ax, *names)


def _profiles(model: FieldModel, field: Field, state: int, ax: Any) -> None:
    wanted, states = field_rollout(model, field)
    times, places = field.places[:2]
    for number, row in enumerate(np.linspace(0, len(times) - 1, PROFILES).astype(int).tolist()):
        ax.plot(places, wanted[state, row], ".", color=f"C{number}", markersize=3)
        ax.plot(places, states[state, row], "-", color=f"C{number}", label=f"t = {times[row]:.3g}")
    ax.legend()
    named(ax, model.axes[0], model.states[state])


def _field_residuals(model: FieldModel, field: Field, state: int, ax: Any) -> None:
    wanted, states = field_rollout(model, field)
    times, places = field.places[:2]
    image = ax.pcolormesh(places, times, wanted[state] - states[state], shading="nearest")
    ax.figure.colorbar(image, ax=ax, label=plain(f"{model.states[state]}: reading less rollout"))
    named(ax, model.axes[0], "t")


PROFILES = 5
"""Times at which profiles of a field are drawn."""

FIELD_DRAWINGS: dict[str, tuple[Callable[[Any, Any, int, Any], None], bool]] = {
    "trajectories": (_profiles, True),
    "residuals": (_field_residuals, True),
}

DRAWINGS: dict[str, tuple[Callable[[Any, Any, int, Any], None], bool]] = {
    "trajectories": (_trajectories, True),
    "phase": (_phase, False),
    "residuals": (_residuals, True),
    "vector_field": (_vector_field, False),
}
"""The function of each kind, and whether it draws each state by itself."""
