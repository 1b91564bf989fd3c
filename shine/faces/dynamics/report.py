"""The report of a run of dynamics: one HTML page with its systems, trajectories and phase portrait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from shine.base.typing import Floats
from shine.data.fields import Field
from shine.faces.dynamics.drawing import PROFILES, field_rollout, rollout
from shine.faces.dynamics.fitted import equations_element
from shine.formats.page.charts.frame import Chart, Figure, dots, line
from shine.formats.page.charts.scales import linear
from shine.formats.page.markup import Content, Element, breakable, element
from shine.formats.page.sections import data_table, grid, groups_of_settings, section, table
from shine.formats.page.subject import fraction, number, printed
from shine.lang.forms.rounding import Precision
from shine.search.dynamics.conserved import conserved_quantities
from shine.search.dynamics.forms import known_units

if TYPE_CHECKING:
    from shine.data.trajectories import Trajectories
    from shine.search.dynamics.fields.model import FieldModel
    from shine.search.dynamics.result import SystemFront
    from shine.search.dynamics.system import SystemModel


def report_parts(
    front: SystemFront,
    readings: Trajectories | Field,
    title: str,
    settings: Mapping[str, Any] | None = None,
    precision: Precision = None,
    units: Mapping[str, str] | None = None,
) -> list[Content]:
    """The result of a search for equations of motion, with its readings, as the parts of a page (see `report_html`);
    the units are those of the settings by default."""
    best = front.best
    units = units or (settings or {}).get("dynamics", {}).get("units") or {}
    known = {key: printed(f"{low:.6g} to {high:.6g}") for key, (low, high) in best.conf_int().items() if low == low}
    told = printed(best.figures).replace("r2 ", "R²\N{NO-BREAK SPACE}")
    if isinstance(readings, Field):
        drawn = [section("Fields", grid(_profiles(cast("FieldModel", best), readings)))]
    else:
        runs = list(range(min(len(readings.runs), 12)))  # most runs that are drawn
        rollouts = [rollout(best, readings, number) for number in runs]
        of_states = known_units(readings, readings.states, units)
        shown = {name: f"{name} [{unit}]" for name, unit in of_states.items() if unit != "1"}
        figures = [_over_time(best, readings, rollouts, state, shown) for state in range(best.n_read)]
        portrait = [_portrait(best, readings, rollouts, place, shown) for place in range(best.n_read - 1)]
        kept = conserved_quantities(best, readings)
        drawn = [
            section("Trajectories", grid(figures)),
            section("Phase portrait", grid(portrait)),
            section("Conserved", element("ul", [element("li", str(each)) for each in kept]) if kept else None),
        ]
    return [
        element("h1", breakable(title)),
        element("p", f"Equations of motion: {told}.", class_="summary"),
        element(
            "section",
            element("div", equations_element(best, precision), class_="formula") if front.found else None,
            element("p", f"Why: {front.reason}.", class_="summary") if front.reason else None,
            class_="card hero",
        ),
        *drawn,
        section("Certainty", table("95 % intervals of the constants", known) if known else None),
        section("Systems", _systems(front, precision)),
        section("Settings", element("div", groups_of_settings(settings), class_="columns") if settings else None),
    ]


def _systems(front: SystemFront, precision: Precision) -> Element:
    """The front as a table, the chosen system marked."""
    rows = []
    for place, model in enumerate(front):
        mark = f"{'▶' if front.found else '?'} {place}" if place == front.best_index else str(place)
        lines = [element("div", element("code", breakable(text))) for text in model.lines(precision)]
        rows.append((mark, str(model.complexity), number(model.error), fraction(model.r2), lines))
    headings = [(name, "number") for name in ("#", "Complexity", "Error", "R²")]
    marks = {front.best_index: {"class_": "chosen"}}
    return data_table([*headings, ("Equations", "formula-cell")], rows, marks=marks)


Rollouts = list[tuple[Floats, Floats]]


def _over_time(
    model: SystemModel, readings: Trajectories, rollouts: Rollouts, state: int, shown: Mapping[str, str]
) -> Figure:
    """Readings of a state, and the rollouts; axes have names with their units."""
    curves = [(times, states[:, state]) for times, states in rollouts]
    points = [(run.times, run.states[:, state]) for run in readings.runs[: len(rollouts)]]
    name = model.states[state]
    labels = shown.get(readings.time, readings.time), shown.get(name, name)
    return _figure(name, labels, curves, points, f"state-{state}")


def _profiles(model: FieldModel, field: Field) -> list[Figure]:
    """Each field at some times: readings, and the rollout from the first ones."""
    wanted, states = field_rollout(model, field)
    times, places = field.places[:2]
    figures = []
    for row in np.linspace(0, len(times) - 1, PROFILES).astype(int).tolist():
        for at, name in enumerate(model.states):
            title, labels = f"{name} at t = {times[row]:.3g}", (model.axes[0], name)
            curve, points = [(places, states[at, row])], [(places, wanted[at, row])]
            figures.append(_figure(title, labels, curve, points, f"field-{at}-{row}"))
    return figures


def _portrait(
    model: SystemModel, readings: Trajectories, rollouts: Rollouts, place: int, shown: Mapping[str, str]
) -> Figure:
    """A state over the one before it."""
    curves = [(states[:, place], states[:, place + 1]) for _, states in rollouts]
    points = [(run.states[:, place], run.states[:, place + 1]) for run in readings.runs[: len(rollouts)]]
    names = model.states[place], model.states[place + 1]
    labels = shown.get(names[0], names[0]), shown.get(names[1], names[1])
    return _figure(f"{names[1]} over {names[0]}", labels, curves, points, f"phase-{place}")


def _figure(
    title: str,
    labels: tuple[str, str],
    curves: list[tuple[Floats, Floats]],
    points: list[tuple[Floats, Floats]],
    identity: str,
) -> Figure:
    """Lines of rollouts through dots of readings."""
    scales = [np.concatenate([each[axis] for each in (*points, *curves)]) for axis in (0, 1)]
    x, y = (linear(values[np.isfinite(values)], margin=0.03) for values in scales)
    chart = Chart(x, y, *labels)
    for across, along in points:
        chart.add(dots(chart.x.places(across), chart.y.places(along)))
    for across, along in curves:
        chart.add(line(chart.x.places(across), chart.y.places(along), class_="series"))
    return Figure(
        title, chart.drawing(f"{title}: readings and rollouts", identity), "Dots are readings, lines rollouts."
    )
