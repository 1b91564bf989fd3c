"""Rows of the commands about many runs, of the log, and of networks."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
from cli.commandline import shine as command
from cli.test_distil import NETWORK
from helpers.past_runs import model, past_run
from promises.rows_of_commands import option
from promises.workshop import choices, finished, record, told

from shine.runs import open_run


def found(*words: str) -> list[str]:
    """The names of the runs that are found, in their order."""
    return [each["name"] for each in json.loads(told("runs", *words, "--json"))]


NOON = 1_699_963_200.0
"""The 14th of November 2023, at noon in UTC."""


def three_runs() -> None:
    """Runs of three days: each has a formula of its own, and the constant x as the first of its front."""
    first, last = model("x", 1.0, 1, 0.1), ("exp(x) + 1.0", "2.0*x + x*x", "x*x*x")
    for day, (name, text) in enumerate(zip("abc", last, strict=True)):
        own = model(text, 0.1 + 0.1 * day, 4 + day, 0.9 - 0.1 * day)
        past_run(Path("runs", name), first, own, date=NOON + 86400 * day, seed=day, data=f"/data/{name}.csv",
                 data_hash=name * 16, population=100 * (day + 1))  # fmt: skip


CONDITIONS = (
    *("--uses", "--without", "--formula", "--nodes", "--r2", "--loss", "--data", "--target", "--since", "--until"),
    *("--set", "--where", "--formulas", "--best", "--sort", "--reverse", "--limit", "--in", "--json"),
)


@option(*(f"runs {each}" for each in CONDITIONS))
def each_condition_finds_its_runs(face: str) -> None:
    three_runs()
    assert found() == ["c", "b", "a"]
    expected: dict[tuple[str, ...], str] = {
        ("--uses", "exp"): "a",
        ("--without", "exp", "--best"): "cb",
        ("--formula", "x*x*x"): "c",
        ("--nodes", "<5", "--best"): "a",
        ("--nodes", "5", "--best"): "ba",
        ("--r2", "0.75"): "ba",
        ("--loss", "0.15"): "a",
        ("--data", "b.csv"): "b",
        ("--data", "cccccc"): "c",
        ("--target", "y"): "cba",
        ("--target", "z"): "",
        ("--since", "2023-11-16"): "c",
        ("--until", "2023-11-15"): "a",
        ("--set", "evolution.population=200"): "b",
        ("--where", "seed > 0 and nodes == 5"): "b",
        ("--sort", "loss"): "abc",
        ("--sort", "loss", "--reverse"): "cba",
        ("--sort", "r2"): "abc",
        ("--sort", "r2", "--reverse"): "cba",
        ("--reverse",): "abc",
        ("--sort", "name", "--limit", "2"): "ab",
    }
    for words, names in expected.items():
        assert "".join(found(*words)) == names, words
    past_run(Path("runs/d"), model("Länge_m", 1.0, 1, 0.5), date=NOON, data=str(Path("rows.csv").resolve()))
    Path("link.csv").symlink_to("rows.csv")
    for words in (("--uses", "Länge [m]"), ("--data", "link.csv"), ("--data", "./rows.csv")):
        assert found(*words) == ["d"], words
    shutil.rmtree("runs/d")
    assert len(found("--formulas")) == 6
    assert {each["nodes"] for each in json.loads(told("runs", "--without", "exp", "--json"))} == {1, 5, 6}
    Path("runs").rename("elsewhere")
    assert found("--in", "elsewhere") == ["c", "b", "a"]
    assert told("runs", "--in", "elsewhere", "--limit", "1").splitlines()[-1] == "2 more; see --limit and --json"


@option("runs show RUN", "runs show --json", "runs compare RUN RUN...", "runs compare --json")
def runs_are_shown_and_compared(face: str) -> None:
    three_runs()
    shown = json.loads(told("runs", "show", "b", "--json"))
    assert shown["seed"] == 1 and [each["expression"] for each in shown["formulas"]] == ["x", "2.0*x + x*x"]
    assert "evolution.population  200" in told("runs", "show", "b")
    made = json.loads(told("runs", "compare", "a", "c", "--json"))
    assert made["differ"]["evolution.population"] == [100, 300] and made["same_data"] is False
    assert "B: runs/c" in told("runs", "compare", "a", "c")


@option("evolve --log", "resume --log")
def a_search_is_kept_by_other_programs_too(face: str) -> None:
    run, curves = finished(), list[tuple[str, int]]()

    class Writer:
        def __init__(self, folder: str) -> None:
            self.folder = folder

        def add_scalar(self, name: str, value: float, generation: int) -> None:
            curves.append((name, generation))

        def __getattr__(self, name: str) -> Any:
            return lambda *given, **named: None

    board = ModuleType("tensorboardX")
    board.SummaryWriter = Writer  # type: ignore[attr-defined]
    with mock.patch.dict(sys.modules, tensorboardX=board):
        told("evolve", "search.yaml", "--out", "logged", "--log", "tensorboard")
        assert Path("logged/tensorboard").is_dir()
        assert max(generation for _, generation in curves) == 3
        told("resume", run, "--set", "stop.generations=5", "--log", "tensorboard")
    assert max(generation for _, generation in curves) == 5
    for log in choices("evolve --log"):
        with mock.patch.dict(sys.modules, {"tensorboardX": None, "mlflow": None}):
            assert f"{log}]" in command("evolve", "search.yaml", "--out", log, "--log", log).stderr


# ---- sweeps ----


def swept(*words: str) -> Any:
    """The JSON of a sweep of short runs."""
    return json.loads(told("sweep", "search.yaml", "--set", "stop.generations=1", *words, "--json"))


GRID = ("sweep CONFIG", *(f"sweep --{name}" for name in ("grid", "seeds", "out", "by", "set", "json", "quiet")))


@option(*GRID, slow=True)
def all_combinations_of_a_grid_are_ranked(face: str) -> None:
    finished()
    grid = ("--grid", "evolution.max_size=1,5", "--seeds", "2", "--out", "s")
    made = swept(*grid, "--by", "nodes")
    assert [(each["settings"], len(each["runs"])) for each in made["standings"]] == [
        ({"evolution.max_size": size}, 2) for size in ("1", "5")
    ]
    for each in made["runs"]:
        kept = record(each["folder"])
        assert (kept["best"]["expression"], kept["seed"]) == (each["formula"], each["seed"])
        assert kept["generations"] == 1 and Path(each["folder"]).resolve().parent == Path("s").resolve()
    for by in choices("sweep --by"):
        values = [each[by] for each in swept(*grid, "--by", by)["standings"]]
        assert values == sorted(values, reverse=by == "r2"), by
    best = swept(*grid)["runs"]
    quiet = told("sweep", "search.yaml", "--set", "stop.generations=1", *grid, "--quiet").strip()
    assert quiet in {each["formula"] for each in best if each["settings"] == {"evolution.max_size": "5"}}


@option("sweep --random", "sweep --range", "sweep --draw", slow=True)
def draws_are_within_their_range_and_repeat_with_their_seed(face: str) -> None:
    finished()
    drawn = {}
    for number, (draw, form) in enumerate((("0", ""), ("0", ""), ("1", ""), ("0", ":log"))):
        span = ("--random", "2", "--range", f"evolution.parsimony=1e-6..1{form}", "--draw", draw)
        made = swept(*span, "--out", f"s{number}")
        drawn[number] = [float(each["settings"]["evolution.parsimony"]) for each in made["runs"]]
        assert len(drawn[number]) == 2 and all(1e-6 <= each <= 1 for each in drawn[number])
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[3] != drawn[0] and max(drawn[3]) < max(drawn[0])


@option("sweep --folds", "sweep --holdout", "sweep --targets", slow=True)
def parts_are_kept_back_and_targets_have_runs_of_their_own(face: str) -> None:
    finished()
    folds = swept("--folds", "3", "--out", "folds")
    assert [each["fold"] for each in folds["runs"]] == ["1/3", "2/3", "3/3"]
    (held,) = swept("--folds", "3", "--holdout", "--out", "held")["runs"]
    assert held["formula"] == folds["runs"][0]["formula"] and held["loss"] == folds["runs"][0]["loss"]
    assert held["loss"] != record(held["folder"])["best"]["loss"]
    targets = swept("--targets", "y,b", "--set", "data.features=[a]", "--out", "targets")
    assert {record(each["folder"])["target"] for each in targets["runs"]} == {"y", "b"}


@option("sweep --workers", slow=True)
def whole_runs_are_shared_by_workers(face: str) -> None:
    finished()
    both = [swept("--seeds", "2", "--out", f"s{count}", "--workers", count)["runs"] for count in ("1", "2")]
    assert [each["formula"] for each in both[0]] == [each["formula"] for each in both[1]]


# ---- networks ----

NETWORKS = tuple(
    f"distil --{name}"
    for name in [
        "inputs",
        "data",
        "target",
        "layer",
        "output",
        "largest",
        "rows",
        "seed",
        "out",
        "set",
        "quiet",
        "json",
    ]
)


@option("distil MODEL", *NETWORKS, "distil --precision", slow=True)
def a_network_is_sampled_as_asked_and_its_formulas_are_found(face: str) -> None:
    Path("network.txt").write_text(NETWORK)
    Path("rows.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 3 + 1},{i * (i % 3 + 1)}\n" for i in range(20)))
    tiny = ("--set", "evolution={population: 50, max_size: 5, seeding: 0}", "--set", "stop.generations=2")
    within = ("--inputs", "a=1:2,b=3:4", *tiny)
    made = json.loads(told("distil", "network.txt", *within, "--rows", "16", "--out", "one", "--json"))
    assert made == json.loads(Path("one/fidelity.json").read_text())
    samples = np.genfromtxt("one/samples.csv", delimiter=",", names=True)
    np.testing.assert_allclose(samples["product"], samples["a"] * samples["b"])
    assert len(samples) == 16 and (samples["a"] <= 2).all() and (samples["b"] >= 3).all()
    assert made["outputs"]["product"]["to_network"]["r2"] == pytest.approx(1)
    for words, names in (
        (("--output", "total"), {"total"}),
        (("--largest", "1"), {"product"}),
        (("--layer", "product"), {"product"}),
    ):
        made = json.loads(told("distil", "network.txt", *within, *words, "--out", f"of{words[0]}", "--json"))
        assert set(made["outputs"]) == names, words
    other = told("distil", "network.txt", *within, "--seed", "1", "--out", "seeded", "--quiet", "--output", "total")
    assert other.strip() == open_run("seeded/total").result.best.expression
    assert Path("seeded/samples.csv").read_text() != Path("of--output/samples.csv").read_text()
    measured = ("--data", "rows.csv", "--target", "y", "--output", "product", *tiny)
    made = json.loads(told("distil", "network.txt", *measured, "--json", "--out", "data"))
    assert made["outputs"]["product"]["to_data"]["rows"] == 20
    assert "a*b" in told("distil", "network.txt", *measured, "--precision", "2", "--out", "precise")
