"""Rows of the tools of the agents' server and their arguments, answered as its processes answer them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from promises.table import row
from promises.workshop import AGENTS, LEFT, RIGHT, TARGET, begin, record

from shine.faces.mcp.answers import CHANNEL, Channel
from shine.faces.mcp.applying import FILES, plot
from shine.faces.mcp.worker import answer, function_of
from shine.formats.write import EXPORTS

RUN = {"run": "runs/law"}
SETTINGS = {
    "data": {"path": "rows.csv", "target": "y"},
    "primitives": ["add", "mul"],
    "evolution": {"population": 60, "max_size": 7, "seeding": 0},
    "fitness": {"noise": "absolute", "threads": 1, "tier": "reference"},
    "stop": {"generations": 3, "seconds": 60},
}


def tool(*words: str, slow: bool = False) -> Any:
    return row(*words, faces=AGENTS, slow=slow)


def line(name: str, arguments: dict[str, Any], seconds: float = 60) -> dict[str, Any]:
    """The line of the process that answers a call, in this one."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    token = CHANNEL.set(Silent(nowhere, seconds, time.monotonic()))
    try:
        # A client sends JSON.
        return answer(function_of(name), {"arguments": json.loads(json.dumps(arguments)), "memory": 4})
    finally:
        CHANNEL.reset(token)
        os.close(nowhere)


class Silent(Channel):
    """A channel that does not end this process."""

    def end_after(self, seconds: float) -> None:
        """Nothing: the tests go on."""


def ask(name: str, /, **arguments: Any) -> Any:
    found = line(name, arguments)
    assert "error" not in found, found
    return found["answer"]


def refused(name: str, /, **arguments: Any) -> str:
    return str(line(name, arguments)["error"])


def searched() -> Path:
    """The run of `RUN` in the current folder, made once."""
    begin()
    kept = Path.cwd().parent / "kept of agents"
    if not kept.exists():
        ask("search", settings=SETTINGS, name="law")
        text = Path("runs/law/config.yaml").read_text()
        Path("runs/law/config.yaml").write_text(text.replace(str(Path.cwd() / "rows.csv"), "rows.csv"))
        shutil.copytree("runs/law", kept)
    else:
        shutil.copytree(kept, "runs/law")
    return Path("runs/law")


def values(text: str) -> Any:
    return eval(text, {"a": LEFT, "b": RIGHT, "exp": np.exp}) + np.zeros(40)


@tool("search", "search.settings", "search.name", "front", "front.run", "front.index")
def a_search_answers_with_its_front(face: str) -> None:
    begin()
    found = ask("search", settings=SETTINGS, name="law")
    assert found["run"] == "runs/law" and found["formulas_of_the_front"] == len(record("runs/law")["front"])
    chosen = found["front"][found["chosen"]]
    np.testing.assert_allclose(chosen["loss"], np.mean((values(found["formula"]) - TARGET) ** 2), rtol=0.01)
    assert ask("search", settings=SETTINGS)["run"] == "runs/rows"
    assert {**ask("front", **RUN), "notes": []} == found | {"notes": []}
    first = ask("front", **RUN, index=0)
    assert first["formula"] == found["front"][0]["formula"]
    low, high = (first["constants"]["values"]["c0"][end] for end in ("low", "high"))
    assert low < TARGET.mean() < high
    assert "has the indices" in refused("front", **RUN, index=99)
    limit = line("search", {"settings": {**SETTINGS, "stop": {"seconds": 61}}})["error"]
    assert "stop.seconds: is above 0 and at most 60" in limit
    assert "parallel: is not for agents" in refused("search", settings={**SETTINGS, "parallel": {"workers": 2}})


@tool("describe_table", "describe_table.path")
def a_table_is_described(face: str) -> None:
    rows = "".join(f"{n},{'uv'[n % 2]},{2 * n if n else ''}\n" for n in range(20))
    Path("t.csv").write_text(f"length [m],kind,y\n{rows}")
    told = ask("describe_table", path="t.csv")
    length, kind, y = told["columns"]
    assert (told["rows"], length["unit_guessed"], kind["examples"], y["missing"]) == (20, "m", ["u", "v"], 1)
    assert (length["least"], length["median"], length["greatest"], length["distinct"]) == (0, 9.5, 19, 20)
    warned = " ".join(told["warnings"])
    assert "has missing values" in warned and "holds texts" in warned and "numbers the rows" in warned
    assert "leads out of the server's folder" in refused("describe_table", path="../t.csv")


@tool("explain", "explain.of", "explain.data", "explain.ranges", "explain.units")
def a_formula_is_explained(face: str) -> None:
    searched()
    told = ask("explain", of=RUN)
    assert told["rows"] == 40 and told["features"]["a"]["direction"].startswith("rises everywhere")
    assert told["features"]["a"]["range"] == pytest.approx([LEFT.min(), LEFT.max()], rel=1e-5)
    text = {"formula": "exp(-a)*b"}
    told = ask("explain", of=text, ranges={"a": [0, 9], "b": [1, 2]})
    assert told["features"]["a"]["direction"].startswith("falls everywhere")
    assert told["features"]["b"]["direction"].startswith("rises everywhere")
    assert ask("explain", of=text, data="rows.csv")["rows"] == 40
    for target, verdict in (("m^2", "consistent"), ("kg", "inconsistent")):
        units = {"a": "m", "b": "m", "target": target}
        told = ask("explain", of={"formula": "a*b"}, data="rows.csv", units=units)["dimensions"]
        assert told["units"] == units and told["verdict"].startswith(verdict), told
    assert "needs 'data'" in refused("explain", of=text)


@tool("compare", "compare.first", "compare.second", "compare.data", "compare.target")
def two_formulas_are_compared(face: str) -> None:
    searched()
    told = ask("compare", first=RUN, second={"formula": "1.3*a*b"}, data="rows.csv", target="y")
    for name in ("first", "second"):
        error = values(told[name]["formula"]) - TARGET
        assert told[name]["root_mean_squared_error"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.01)
        assert told[name]["largest_error"] == pytest.approx(abs(error).max(), rel=0.05)
    assert told["verdict"] == "the first formula has the smaller squared errors"
    told = refused("compare", first=RUN, second=RUN, data="rows.csv", target="z")
    assert "there is no column z; the file has a, b, y" in told
    other = ask("compare", first={**RUN, "index": 0}, second=RUN, data="rows.csv", target="a")
    assert other["first"]["mean_absolute_error"] == pytest.approx(abs(TARGET.mean() - LEFT).mean(), rel=0.01)


@tool("predict", "predict.of", "predict.data", "predict.interval", "predict.out")
def rows_are_predicted(face: str) -> None:
    searched()
    told = ask("predict", of=RUN, data="rows.csv", interval=0.9, out="out.csv")
    assert told["rows"] == 40 and told["file"] == "out.csv"
    table = np.genfromtxt("out.csv", delimiter=",", names=True)
    np.testing.assert_allclose(table["prediction"], values(told["formula"]), rtol=1e-3)
    assert 32 <= np.sum((table["low"] < TARGET) & (table["high"] > TARGET)) <= 40
    plain = ask("predict", of={"formula": "a + b"}, data="rows.csv")
    np.testing.assert_allclose(plain["first_rows"]["prediction"], (LEFT + RIGHT)[:10], rtol=1e-5)
    assert (plain["least"], plain["greatest"]) == pytest.approx((min(LEFT + RIGHT), max(LEFT + RIGHT)), rel=1e-5)
    assert "exists already" in refused("predict", of=RUN, data="rows.csv", out="out.csv")
    assert "name a run" in refused("predict", of={"formula": "2.5*a"}, data="rows.csv", interval=0.9)


@tool("plot", "plot.of", "plot.kind", "plot.out", slow=True)
def every_kind_is_drawn(face: str) -> None:
    pytest.importorskip("matplotlib")
    searched()
    pictures = set()
    for kind in get_args(get_type_hints(plot)["kind"]):
        found = line("plot", {"of": RUN, "kind": kind, "out": f"{kind}.png"})
        assert found["answer"]["file"] == f"{kind}.png", found
        pictures.add(Path(f"{kind}.png").read_bytes())
        assert base64.b64decode(found["png"]) == Path(f"{kind}.png").read_bytes()
    assert len(pictures) == 7 and all(each.startswith(b"\x89PNG") for each in pictures)
    assert "name a run" in refused("plot", of={"formula": "a"})


@tool("export", "export.of", "export.to", "export.name", "export.precision", "export.out")
def a_formula_is_exported(face: str) -> None:
    searched()
    space: dict[str, Any] = {}
    found = line("export", {"of": {"formula": "1.23456*a*b"}, "to": "python", "name": "law", "precision": 3})
    exec(found["raw"], space)
    assert space["law"](2.0, 3.0) == pytest.approx(7.38) and found["answer"]["arguments"] == ["a", "b"]
    for to in EXPORTS:
        name = f"f_{to}{FILES.get(to, '.py')}"
        found = line("export", {"of": RUN, "to": to, "out": name})
        if "install" in found.get("error", ""):  # a library is missing
            continue
        assert name in found["answer"]["files"] and all(Path(each).stat().st_size for each in found["answer"]["files"])
    assert "no such format" in refused("export", of=RUN, to="fortran")


@tool(*("next_measurement", *(f"next_measurement.{name}" for name in ("of", "box", "count", "cost"))))
def points_to_measure_are_told(face: str) -> None:
    searched()
    points = ask("next_measurement", of=RUN, box={"a": [1, 9], "b": 3}, count=2)["points"]
    assert [(1 <= each["a"] <= 9, each["b"]) for each in points] == [(True, 3)] * 2
    (dear,) = ask("next_measurement", of=RUN, box={"a": [1, 9]}, cost="1 + a**9")["points"]
    assert dear["a"] < points[0]["a"]
    assert "name a run" in refused("next_measurement", of={"formula": "a"})


@tool("past_runs", "past_runs.folder", "past_runs.where", "past_runs.sort", "past_runs.limit")
def past_runs_are_found(face: str) -> None:
    searched()
    for name, generations in (("short", 1), ("other", 2)):
        ask("search", settings={**SETTINGS, "stop": {"generations": generations}, "seed": generations}, name=name)
    names = [each["run"] for each in ask("past_runs", sort="name")["runs"]]
    assert names == ["runs/law", "runs/other", "runs/short"]
    assert [each["run"] for each in ask("past_runs", where=["generations < 3", "seed == 2"])["runs"]] == ["runs/other"]
    assert ask("past_runs", limit=1)["found"] == 3 and len(ask("past_runs", limit=1)["runs"]) == 1
    Path("runs").rename("elsewhere")
    assert len(ask("past_runs", folder="elsewhere")["runs"]) == 3
