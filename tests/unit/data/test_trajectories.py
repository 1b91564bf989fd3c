"""Trajectories from tables as users have them, and what is refused."""

import warnings

import numpy as np
import pytest

from shine.base.errors import DataError, SamplingWarning
from shine.data.trajectory_tables import Names, trajectories

pandas = pytest.importorskip("pandas")

TIMES = np.linspace(0, 4, 30)
STATES = np.column_stack([np.exp(-TIMES), np.cos(TIMES)])
FRAME = pandas.DataFrame({"t": TIMES, "prey": STATES[:, 0], "fox no.": STATES[:, 1], "u": TIMES**2})


def test_an_array_has_one_run_with_numbered_states():
    found = trajectories(STATES, TIMES)
    assert (found.states, found.controls, found.time) == (("x0", "x1"), (), "t")
    assert np.array_equal(found.runs[0].states, STATES)
    assert found.runs[0].controls.shape == (30, 0)


def test_a_step_counts_from_zero():
    assert trajectories(STATES, 0.5).runs[0].times[:3].tolist() == [0, 0.5, 1]


def test_states_of_a_frame_are_the_named_columns():
    found = trajectories(FRAME, "t", names=Names(states=["fox no.", "prey"]))
    assert found.headings == ("fox no.", "prey")
    assert np.array_equal(found.runs[0].states, STATES[:, ::-1])
    with pytest.raises(DataError, match="no column 'wolf', which is given as a state"):
        trajectories(FRAME, "t", names=Names(states=["wolf"]))


def test_headings_name_states_controls_and_time():
    found = trajectories(FRAME, "t", "u", sigma={"prey": 0.1, "fox no.": 0.2})
    assert (found.states, found.controls, found.time) == (("prey", "fox_no"), ("u",), "t")
    assert found.headings == ("prey", "fox no.")
    assert found.sigma.tolist() == [0.1, 0.2]
    assert np.array_equal(found.runs[0].controls[:, 0], TIMES**2)


def test_lists_have_a_run_in_each():
    found = trajectories([STATES, STATES[:20]], [TIMES, TIMES[:20]], [TIMES, TIMES[:20]])
    assert [len(run.times) for run in found.runs] == [30, 20]
    assert [run.name for run in found.runs] == ["0", "1"]
    assert trajectories([[1.0, 2, 4], [2.0, 4, 8]], [[0, 1, 2], [0, 1, 2]]).states == ("x0",)


def test_labels_part_the_rows_of_one_table():
    two = pandas.concat([FRAME, FRAME[:12]]).assign(id=["b"] * 30 + ["a"] * 12)
    found = trajectories(two, "t", "u", run="id")
    assert [(run.name, len(run.times)) for run in found.runs] == [("a", 12), ("b", 30)]
    plain = trajectories(np.vstack([STATES, STATES[:12]]), np.append(TIMES, TIMES[:12]), run=[0] * 30 + [1] * 12)
    assert np.array_equal(plain.runs[1].states, STATES[:12])


def test_polars_and_missing_values_of_pandas_are_read():
    polars = pytest.importorskip("polars")
    assert trajectories(polars.DataFrame(FRAME.to_dict("list")), "t", "u").states == ("prey", "fox_no")
    counts = pandas.DataFrame({"hare": pandas.array([20, None, 40, 30], dtype="Int64")})
    assert np.isnan(trajectories(counts).runs[0].states[:, 0]).tolist() == [False, True, False, False]


def test_a_function_of_the_time_is_read_at_the_times():
    assert np.array_equal(trajectories(STATES, TIMES, np.sin).runs[0].controls[:, 0], np.sin(TIMES))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((STATES[:1],), "x has 1 time; a run needs at least 2"),
        ((np.zeros((0, 2)),), "x has 0 times"),
        ((STATES, TIMES[:-1]), "x has 30 rows, but t has 29 times"),
        ((STATES, -1.0), "t must be the times, a heading, or a step above 0, is -1.0"),
        ((STATES, TIMES[::-1]), "the times of x go back from 4 to 3.86207 in row 1"),
        ((STATES, np.floor(TIMES)), "the times of x repeat 0 in row 1"),
        (([STATES, STATES[:, :1]], TIMES), r"run 1 has the states x0, and run 0 has x0, x1"),
        (([STATES, STATES], [TIMES]), "t is a list of 1, and x is a list of 2 runs"),
        ((STATES, TIMES, TIMES[:7]), "x has 30 times, but u has 7; give the controls at each time"),
        ((STATES, TIMES, np.log), "u has 1 values that are NaN or infinite, the first in row 0"),
        ((np.column_stack([STATES, np.ones(30)]), TIMES), "state 'x2' is 1 at all times; leave it out"),
        ((np.column_stack([STATES, np.full(30, np.nan)]), TIMES), "state 'x2' has 0 readings"),
        ((np.where(STATES > 0.9, np.inf, STATES), TIMES), "x is infinite in row 0, column 0"),
        ((FRAME[["t", "prey"]], TIMES), "column 't' of x has the name of the time; give t='t'"),
        ((FRAME, "time"), "X has no column .time., which is given as t; it has t, prey"),
        ((["a", "b"],), "x holds text, such as .a.; numbers"),
        ((None,), "x must be an array of shape"),
        ((np.column_stack([STATES, 1 + 1e-16 * STATES]), TIMES), "state 'x2' is 1 at all times"),
        ((pandas.DataFrame({"a": ["u"] * 30, "b": TIMES}), TIMES), "column 'a' of x holds no numbers; leave it out"),
        ((np.full((30, 2), "u"), TIMES), "x"),
        ((STATES, TIMES, [["u"]] * 30), "u: column 0 holds text"),
        ((STATES, TIMES, lambda time: "u"), "the function u returns 'u'; numbers are needed"),
        (
            (STATES, TIMES, lambda time: [1.0] * (1 + (time > 3))),
            r"returns an array of shape \(2,\) at time 3\.\d+, and",
        ),
        ((5.0,), "x must be an array of shape"),
    ],
)
def test_bad_tables_get_one_line(arguments, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # log(0) of a user's function
        with pytest.raises(DataError, match=message) as error:
            trajectories(*arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("sigma", [0.0, [0.1, 0.2, 0.3], {"x0": 1.0}, "much"])
def test_bad_deviations_get_one_line(sigma):
    with pytest.raises(DataError, match="sigma"):
        trajectories(STATES, TIMES, sigma=sigma)


def test_a_gap_longer_than_the_period_is_refused():
    times = np.concatenate([np.arange(0, 20, 0.1), np.arange(40, 60, 0.1)])
    with pytest.raises(DataError, match=r"not read from 19.9 to 40, longer than its period of about 6\.\d+; split"):
        trajectories(np.sin(times), times)
    trajectories([np.sin(times[:200]), np.sin(times[200:])], [times[:200], times[200:]])


def test_a_gap_in_a_slow_motion_is_none():
    times = np.concatenate([np.arange(0, 2, 0.1), np.arange(4, 6, 0.1)])
    trajectories(np.exp(-times), times)


def test_coarse_readings_are_warned_of_with_the_figure():
    with pytest.warns(SamplingWarning, match=r"period of about 3\.\d+, which has 3\.\d readings"):
        trajectories(np.sin(2 * np.arange(60.0)), 1.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_pulses_between_the_readings_are_warned_of_with_the_figure(sign):
    times = np.linspace(0, 20, 101)
    with pytest.warns(SamplingWarning, match=r"'x0' has pulses, each with 1 readings beyond half its height; 2\.5 or"):
        trajectories(sign * np.exp(100 * (np.sin(times) - 1)), times)
    trajectories(sign * np.exp(20 * (np.sin(times) - 1)), times)


def test_steps_of_a_series_are_never_too_coarse():
    trajectories(np.sin(2 * np.arange(60.0)), 1.0, continuous=False)


def test_noise_at_rest_is_no_swing():
    times = np.arange(0, 60, 0.2)
    readings = np.exp(-times) + 0.02 * np.random.default_rng(0).standard_normal(len(times))
    trajectories(readings, times)
