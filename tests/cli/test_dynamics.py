"""Runs of dynamics on the command line: a configuration with `dynamics:`, and what the other commands do with them."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.commandline import shine
from helpers.known_systems import known_search

from shine.search.dynamics import run
from shine.search.dynamics.known_parts import parts_of

CONFIG = """\
data: {path: motion.csv}
dynamics: {time: time, states: [x, speed in m/s], run: run}
stop: {seconds: 5}
"""

START = "x,speed in m/s\n1,0\n0,2\n"


@pytest.fixture
def spring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The name of a run of a spring, in ``runs``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "find_dynamics", known_search(("0.9*speed_in_m_s", "-x"), ("speed_in_m_s", "-1.0*x")))
    times = np.linspace(0, 3, 31)
    rows = [
        ",".join([repr(t), repr(size * math.cos(t)), repr(-size * math.sin(t)), name])
        for name, size in (("a", 1), ("b", 2))
        for t in times.tolist()
    ]
    Path("motion.csv").write_text("\n".join(["time,x,speed in m/s,run", *rows, ""]))
    Path("spring.yaml").write_text(CONFIG)
    Path("start.csv").write_text(START)
    found = shine("evolve", "spring.yaml")
    assert found.exit_code == 0, found.stderr
    assert "result.json, front.csv, log.jsonl and config.yaml are in runs/spring" in found.stdout
    assert ">>>" in found.stdout
    return "spring"


def table(text: str) -> tuple[list[str], np.ndarray]:
    heading, *rows = text.splitlines()
    return heading.split(","), np.array([[float(cell) for cell in row.split(",")] for row in rows])


def test_the_result_says_all_of_the_systems(spring: str) -> None:
    record = json.loads(Path("runs/spring/result.json").read_text())
    assert record["best"]["expression"] == "x' = speed_in_m_s; speed_in_m_s' = -1.0*x"
    assert record["best"] == record["front"][1]
    assert record["headings"] == ["x", "speed in m/s"]
    assert record["best"]["starts"] == [[1, 0], [2, 0]]
    listed = shine("runs", "--json")
    assert [each["target"] for each in json.loads(listed.stdout)] == ["x, speed in m/s"]


def test_every_command_says_that_nothing_was_found(monkeypatch: pytest.MonkeyPatch, spring: str) -> None:
    found = known_search(("0.9*speed_in_m_s", "-x"), ("speed_in_m_s", "-1.0*x"), doubt="it is noise. Read more")
    monkeypatch.setattr(run, "find_dynamics", found)
    quiet = shine("evolve", "spring.yaml", "--out", "lost", "--quiet")
    assert (quiet.exit_code, quiet.stdout) == (0, "")
    assert quiet.stderr == "nothing was found: it is noise. Read more\n"
    assert "nothing was found: it is noise" in shine("evolve", "spring.yaml", "--out", "again").stdout
    for command in (["predict", "lost", "start.csv", "--times", "0:1:0.5"], ["export", "lost", "--to", "python"]):
        refused = shine(*command)
        assert refused.exit_code == 1
        assert "nothing was found: it is noise. Read more. To use a system of the front anyway" in refused.stderr
        assert shine(*command, "--index", "1").exit_code == 0
    assert shine("summary", "lost").stdout.startswith("nothing was found: it is noise")
    assert json.loads(shine("summary", "lost", "--json").stdout)["found"] is False
    assert json.loads(Path("lost/result.json").read_text())["found"] is False
    assert "True" not in Path("lost/front.csv").read_text()
    shine("report", "lost", "--out", "lost.html")
    page = Path("lost.html").read_text()
    assert "nothing was found: it is noise" in page
    assert "<math" not in page
    assert "? 1" in page


def test_a_system_is_exported_as_a_program(spring: str) -> None:
    assert "int spring_integrate(" in shine("export", spring, "--to", "c", "--name", "spring").stdout
    assert "x' = 0.9*speed_in_m_s" in shine("export", spring, "--to", "python", "--index", "0").stdout
    shine("export", spring, "--to", "latex", "--out", "system.tex")
    assert r"\dot{x}" in Path("system.tex").read_text()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not installed")
def test_a_program_in_c_is_compiled_as_it_says(spring: str) -> None:
    shine("export", spring, "--to", "c", "--name", "law", "--out", "my law.c")
    command = re.search(r"cc -O2 .* -o law", Path("my law.c").read_text())
    assert command
    told = subprocess.run(f"{command[0]} && ./law 1 0 3 1", shell=True, capture_output=True, text=True, check=True)
    np.testing.assert_allclose(table(told.stdout)[1][:, 1], np.cos(range(4)), atol=1e-7)


def test_the_report_has_trajectories_and_the_phase_portrait(spring: str) -> None:
    assert shine("report", spring).stdout == "runs/spring/report.html\n"
    page = Path("runs/spring/report.html").read_text().replace("<wbr>", "")
    for part in ("Trajectories", "Phase portrait", "speed_in_m_s over x", "<svg", "0.9*speed_in_m_s"):
        assert part in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "spring", "start.csv", "--times", "3:0:0.1"), "--times 3:0:0.1: must be FIRST:LAST:STEP"),
        (("predict", "spring", "start.csv"), "has no column 'time' of times; give them by --times, such as 0:20:0.1"),
        (("export", "spring", "--to", "c", "--name", "my law"), "--name my law: is no name of a function"),
        (("predict", "spring", "start.csv", "--times", "0:1:0.1", "--out", "a.doc"), "--out a.doc: files end in"),
        (("export", "spring", "--to", "excel"), "no such format for dynamics; use one of python, c"),
        (("next", "spring"), "is a result of dynamics, which shine predict, export, report and summary take"),
        (("summary", "spring", "--exact", "2"), "--exact is for runs of one target"),
        (("evolve", "spring.yaml", "--set", "data.target=x"), "data.target: is not for dynamics"),
        (("evolve", "spring.yaml", "--set", "template=f(x)"), "template: is not for dynamics"),
        (("config", "check", "spring.yaml", "--set", "fitness.noise=log"), "fitness.noise: is not for dynamics"),
        (("evolve", "spring.yaml", "--set", "dynamics.state=[x]"), 'did you mean "states"?'),
        (("evolve", "spring.yaml", "--set", "dynamics.time=tme"), "there is no column 'tme'"),
        (("evolve", "spring.yaml", "--set", "dynamics.run=null"), "column 'run' holds text"),
    ],
)
def test_wrong_uses_get_one_line(spring: str, arguments: tuple[str, ...], message: str) -> None:
    if "dynamics.run=null" in arguments:
        arguments = (*arguments, "--set", "dynamics.states=null")
    found = shine(*arguments)
    assert found.exit_code == 2, found.stderr
    assert message in found.stderr


def test_a_map_with_a_lag_goes_from_file_to_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "find_dynamics", known_search(("0.5*(x + x_lag1)", "x"), lags=1))
    Path("series.csv").write_text("k,x\n" + "".join(f"{k},{value}\n" for k, value in enumerate([1, 2, 1.5, 1.75])))
    Path("series.yaml").write_text("data: {path: series.csv}\ndynamics: {time: k, kind: map, lags: 1}\n")
    assert shine("evolve", "series.yaml").exit_code == 0
    Path("start.csv").write_text("k,x\n0,1\n1,3\n")
    heading, rows = table(shine("predict", "series", "start.csv", "--times", "0:3:1").stdout)
    assert heading == ["k", "x"]
    np.testing.assert_allclose(rows[:, 1], [3, 2, 2.5, 2.25])
    assert "int f_iterate(" in shine("export", "series", "--to", "c").stdout
    assert shine("report", "series").exit_code == 0
    Path("start.csv").write_text("x\n1\n")
    assert "a start has 2 rows, the oldest first" in shine("predict", "series", "start.csv", "--times", "0:3:1").stderr
    found = shine("evolve", "series.yaml", "--set", "dynamics.kind=ode")
    assert "dynamics: lags are for maps" in found.stderr


def test_a_hidden_state_goes_from_file_to_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "find_dynamics", known_search(("x*h", "-1.0*x"), hidden=0, stiff=True))
    times = np.linspace(0, 2, 21)
    rows = zip(times.tolist(), (2 / np.cosh(times) ** 2).tolist(), strict=True)
    Path("pulse.csv").write_text("t,x\n" + "".join(f"{at},{value}\n" for at, value in rows))
    Path("pulse.yaml").write_text("data: {path: pulse.csv}\ndynamics: {time: t, hidden: 1}\n")
    assert shine("evolve", "pulse.yaml").exit_code == 0
    assert "hidden: h" in Path("runs/pulse/config.yaml").read_text()
    Path("start.csv").write_text("x,h\n2,0\n")
    heading, found = table(shine("predict", "pulse", "start.csv", "--times", "0:2:0.1").stdout)
    assert heading == ["t", "x"]
    np.testing.assert_allclose(found[:, 1], 2 / np.cosh(times) ** 2, atol=1e-7)
    assert "int f_integrate(" in shine("export", "pulse", "--to", "c").stdout
    assert '"solver": Kvaerno5()' in shine("export", "pulse", "--to", "jax").stdout
    assert shine("report", "pulse").exit_code == 0
    Path("start.csv").write_text("x\n1\n")
    assert "there is no column 'h'" in shine("predict", "pulse", "start.csv", "--times", "0:2:0.1").stderr
    found = shine("evolve", "pulse.yaml", "--set", "dynamics.hidden=2")
    assert "dynamics.hidden" in found.stderr
    assert "hidden is 2; it must be 1, or the name" in found.stderr
    assert "hidden is for kind='ode'" in shine("evolve", "pulse.yaml", "--set", "dynamics.order=2").stderr


def test_known_parts_with_options_and_a_conserved_quantity_reach_the_search(
    monkeypatch: pytest.MonkeyPatch, spring: str
) -> None:
    search = known_search(("speed_in_m_s", "-1.0*x"))
    asked: list[Any] = []

    def noted(trajectories: object, settings: object, *others: object) -> object:
        asked.append(settings)
        return search(trajectories, settings, *others)

    monkeypatch.setattr(run, "find_dynamics", noted)
    known = "{formula: x' = f(x) - k*x, parameters: {k: [0, null]}, unknown: {f: {arguments: [x], max_size: 5}}}"
    assert shine("evolve", "spring.yaml", "--set", f"dynamics.template={known}", "--out", "a").exit_code == 0
    assert (
        shine("evolve", "spring.yaml", "--set", "dynamics.conserve=x**2 + speed_in_m_s**2", "--out", "b").exit_code == 0
    )
    given, conserving = asked
    assert given.template["formula"] == "x' = f(x) - k*x"
    parts, parameters = parts_of({"x": "f(x) - k*x"}, ("x",), 1, given.template)
    assert (parameters["k"].bounds, parts[0].template.unknowns[0].max_size) == ((0, math.inf), 5)
    assert conserving.conserve == "x**2 + speed_in_m_s**2"
    units = shine("evolve", "spring.yaml", "--set", "constraints={units: {x: m}, target_unit: m}")
    assert "constraints.units: is for one target; write dynamics.units" in units.stderr
    both = shine("evolve", "spring.yaml", "--set", f"dynamics.template={known}", "--set", "dynamics.conserve=x")
    assert "dynamics: conserve and template are both given" in both.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["dynamics.units={x: m}"], "dynamics.units: 'speed_in_m_s' has none; give x, speed_in_m_s, time a unit"),
        (["dynamics.units={x: flurb, speed in m/s: m/s, time: s}"], "dynamics.units: of 'x': "),
        (
            ["dynamics.units={x: m, speed in m/s: m/s, time: s}", "constraints.dimensionless_constants=true"],
            "set fitness.linear_scaling to false",
        ),
    ],
)
def test_wrong_units_are_told_at_their_place(spring: str, settings: list[str], message: str) -> None:
    found = shine("evolve", "spring.yaml", *(word for each in settings for word in ("--set", each)))
    assert found.exit_code != 0 and message in found.stderr.replace("\n", " ")


def test_the_constants_have_a_summary(spring: str) -> None:
    lines = shine("summary", spring).stdout.splitlines()
    assert lines[0].split() == ["x'", "=", "speed_in_m_s"]
    assert lines[-2].split() == ["speed_in_m_s'[0]", "-1", "0.01", "-1.0196", "-0.9804"]
    found = json.loads(shine("summary", spring, "--index", "0", "--json").stdout)
    np.testing.assert_allclose(found["conf_int"]["x'[0]"], [0.8804, 0.9196], atol=1e-4)


def test_a_configuration_is_checked_without_a_search(spring: str) -> None:
    assert "spring.yaml: valid; x, speed_in_m_s at 62 times of 2 runs" in shine("config", "check", "spring.yaml").stdout
    assert json.loads(shine("config", "check", "spring.yaml", "--json").stdout)["states"] == ["x", "speed_in_m_s"]
    wrong = shine("config", "check", "spring.yaml", "--set", "dynamics.states=[q]")
    assert wrong.exit_code == 2 and "there is no column 'q'" in wrong.stderr
