"""Systems whose equations keep the sums that the runs keep."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.lang.parse import parse
from shine.search.dynamics.closing import closed
from shine.search.dynamics.conserved import planes_of
from shine.search.dynamics.joining import Candidate, model_of
from shine.search.dynamics.rows import RateRows
from shine.search.dynamics.summands import summands

LAWS = {
    "two molecules of one kind": ((2.0, 0.3), "m' = 0.9*d - 1.3*m**2; d' = 0.65*m**2 - 0.45*d"),
    "binding": ((1.0, 1.6, 0.2), "r' = 0.7*c - 1.1*r*l; l' = 0.7*c - 1.1*r*l; c' = 1.1*r*l - 0.7*c"),
    "infection": ((1.7, 0.2, 0.0), "s' = 0.1*r - 0.6*s*i; i' = 0.6*s*i - 0.3*i; r' = 0.3*i - 0.1*r"),
    "saturation": ((3.0, 0.1), "s' = 0.2*p - 1.2*s/(0.5 + s); p' = 1.2*s/(0.5 + s) - 0.2*p"),
}
"""Initial values and closed laws, each term of which leaves one state and enters another."""


def rates_of(law):
    pairs = dict(line.split("' = ") for line in law.split("; "))
    function = eval(f"lambda {', '.join(pairs)}: ({', '.join(pairs.values())})")
    return list(pairs), lambda states: np.array(function(*states))


def motion(law, start, count=81, end=6.0, parts=40):
    """States at some times, by the method of Runge and Kutta in small steps."""
    _, rates = rates_of(law)
    found, step = [np.array(start)], end / (count - 1) / parts
    for _ in range(count - 1):
        x = found[-1]
        for _ in range(parts):
            a = rates(x)
            b = rates(x + step / 2 * a)
            c = rates(x + step / 2 * b)
            x = x + step / 6 * (a + 2 * b + 2 * c + rates(x + step * c))
        found.append(x)
    return np.array(found), np.linspace(0, end, count)


@pytest.mark.parametrize("name", LAWS)
def test_the_law_is_the_shortest_system_that_keeps_the_sums(name):
    start, law = LAWS[name]
    names, rates = rates_of(law)
    states, _ = motion(law, start)
    rows = [
        RateRows.of(Dataset.from_arrays(states, own, features=names), np.full(len(own), 1e-9), float(len(own)))
        for own in np.array([rates(each) for each in states]).T
    ]
    fronts = [[Candidate(model_of(parse("1.0", names), own), 99.0)] for own in rows]
    if name == "saturation":  # what is no polynomial comes from the searches
        fronts[0].insert(0, Candidate(model_of(parse("0.2*p - 1.2*s/(0.5 + s)", names), rows[0]), 0.0))
    best, *others = closed(fronts, rows, names, planes_of(states, names))
    found = [{each.powers: each.coefficient for each in summands(own.model.tree)} for own in best]
    true = [
        {each.powers: each.coefficient for each in summands(parse(text.split(" = ")[1], names))}
        for text in law.split("; ")
    ]
    assert [own.keys() for own in found] == [own.keys() for own in true]
    for own, wanted in zip(found, true, strict=True):
        assert own == pytest.approx(wanted, rel=1e-4)
    off = np.array(start) + 0.3
    for system in (best, *others):  # each sum stays wherever a motion begins
        speeds = [float(each.model.kernel(*off[:, None])[0]) for each in system]
        for plane in planes_of(states, names):
            total = sum(weight * speeds[names.index(own)] for own, weight in plane.weights.items())
            assert abs(total) < 1e-3 * max(map(abs, speeds))


@pytest.mark.slow
def test_a_search_finds_the_law_that_holds_off_the_plane():
    start, law = LAWS["binding"]
    names, _ = rates_of(law)
    model = shine.SymbolicDynamics(max_time=20, random_state=0).fit(*motion(law, start), states=names)
    other = np.array(start)[::-1] + 0.4
    wanted, times = motion(law, other)
    np.testing.assert_allclose(model.simulate(other, times), wanted, atol=1e-6)
    assert "forms that differ by it are equal here" in model.front_.reason
