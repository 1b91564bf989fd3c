"""Rows of the options of the command line about one run and one formula."""

from __future__ import annotations

import ctypes
import json
import math
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.request import urlopen

import numpy as np
import pytest
from cli.commandline import shine as command
from cli.test_compile import PRODUCT
from helpers.known_systems import known_search
from promises.table import row
from promises.workshop import COMMANDS, LEFT, RIGHT, TARGET, begin, choices, finished, formulas, record, told
from scipy.stats import t as student

import shine
from shine.formats.write import EXPORTS
from shine.search.dynamics import run as dynamics

FIXTURES = Path(__file__).parents[1] / "fixtures"


def option(*words: str, slow: bool = False) -> Any:
    return row(*words, faces=COMMANDS, slow=slow)


@option("evolve CONFIG", "evolve --json", "evolve --quiet", "evolve --out", "evolve --seed", "evolve --set")
def a_search_prints_and_keeps_what_python_finds(face: str) -> None:
    search = begin()
    printed = json.loads(told("evolve", search, "--out", "one", "--json", "--seed", "3", "--set", "stop.generations=1"))
    assert printed == record("one")
    settings = {"primitives": ["add", "mul"], "population": 60, "max_size": 7, "seeding": 0, "noise": "absolute"}
    limits = {"generations": 1, "seconds": None, "threads": 1, "tier": "reference"}
    found = shine.evolve(np.column_stack([LEFT, RIGHT]), TARGET, features=["a", "b"], seed=3, **settings, **limits)
    assert formulas("one") == [model.expression for model in found.front]
    quiet = [told("evolve", search, "--quiet").strip() for _ in range(2)]
    assert quiet == [record(f"runs/{name}")["best"]["expression"] for name in ("search", "search-2")]


@option("resume RUN", "resume --set", "resume --json", "resume --quiet")
def a_resumed_run_ends_where_a_longer_one_does(face: str) -> None:
    run = finished()
    told("evolve", "search.yaml", "--out", "long", "--quiet", "--set", "stop.generations=4")
    assert json.loads(told("resume", run, "--set", "stop.generations=4", "--json")) == record(run)
    assert formulas(run) == formulas("long")
    assert told("resume", run, "--quiet") == record(run)["best"]["expression"] + "\n"


@option("evolve --live", "evolve --open", "resume --live", "resume --open")
def a_page_shows_the_search_and_a_browser_opens_it(face: str) -> None:
    run, pages = finished(), list[str]()

    def browser(url: str) -> bool:
        # A file of the user alone leads to the address, which is a secret.
        address = re.search(r"url=([^\"]+)", urlopen(url).read().decode())
        pages.append(urlopen(address[1]).read().decode() if address else "")
        return True

    begins = (("evolve", "search.yaml", "--out", "shown"), ("resume", run, "--set", "stop.generations=4"))
    with mock.patch("webbrowser.open", browser):
        for words in begins:
            told(*words, "--live", "--open")
        alone = command("resume", run, "--set", "stop.generations=5", "--live")
    assert "live page, for you alone: http://127.0.0.1" in alone.stderr
    assert ["shown" in pages[0], "run" in pages[1], len(pages)] == [True, True, 2]


@option("evolve --workers", "resume --workers", slow=True)
def workers_find_the_same(face: str) -> None:
    begin()
    told("evolve", "search.yaml", "--out", "shared", "--quiet", "--workers", "2", "--set", "evolution.islands=2")
    told("evolve", "search.yaml", "--out", "alone", "--quiet", "--set", "evolution.islands=2")
    assert formulas("shared") == formulas("alone")
    assert "workers: 2" in Path("shared/config.yaml").read_text()
    for name, workers in (("shared", "1"), ("alone", "2")):
        told("resume", name, "--quiet", "--set", "stop.generations=5", "--workers", workers)
    assert formulas("shared") == formulas("alone") and record("alone")["generations"] == 5


@option("evolve --precision", "resume --precision", "runs show --precision", "export --precision", "report --precision")
def a_precision_rounds_the_constants(face: str) -> None:
    run = finished()
    number = float(record(run)["best"]["expression"].split("*")[0])
    texts = {digits: f"{number:.{digits}g}" for digits in (2, 5)} | {"exact": repr(number)}
    for digits, text in texts.items():
        precise = ("--precision", str(digits))
        assert text in told("evolve", "search.yaml", *precise)
        for words in (("resume", run), ("runs", "show", run), ("export", run, "--to", "python")):
            assert re.search(rf"{text}(?!\d)", told(*words, *precise)), words
        told("report", run, "--out", "page.html", *precise)
        assert re.search(rf">{text}<", Path("page.html").read_text(encoding="utf-8"))


@option("predict RUN", "predict DATA", "predict --index", "predict --out", "predict --json")
def predictions_are_the_values_of_the_formula(face: str) -> None:
    run = finished()
    Path("new.csv").write_text("b,note,a\n2,x,3\n4,y,5\n")
    rows = {"a": np.array([3.0, 5.0]), "b": np.array([2.0, 4.0])}
    for index, text in enumerate(formulas(run)):
        made = json.loads(told("predict", run, "new.csv", "--index", str(index), "--json"))
        assert (made["index"], made["expression"]) == (index, text)
        np.testing.assert_allclose(made["prediction"], eval(text, dict(rows)) + np.zeros(2))
    assert told("predict", run, "new.csv", "--out", "out.csv") == ""
    assert Path("out.csv").read_text() == told("predict", run, "new.csv")


@option("predict --interval", "predict --mean")
def intervals_are_those_of_least_squares(face: str) -> None:
    product, at = LEFT * RIGHT, 3.0
    slope = (product @ TARGET) / (product @ product)
    spread = np.sum((TARGET - slope * product) ** 2) / 39
    run = finished()
    Path("new.csv").write_text("a,b\n1.5,2\n")
    for level in (0.5, 0.95):
        for mean in (True, False):
            words = ("--interval", str(level), *(["--mean"] if mean else []), "--json")
            made = json.loads(told("predict", run, "new.csv", *words))
            half = student.ppf((1 + level) / 2, 39) * math.sqrt(
                spread * at**2 / (product @ product) + (0 if mean else spread)
            )
            np.testing.assert_allclose((made["high"][0] - made["low"][0]) / 2, half, rtol=0.02)


@option("summary RUN", "summary --index", "summary --exact", "summary --json")
def standard_errors_are_those_of_least_squares(face: str) -> None:
    run = finished()
    assert re.fullmatch(r"[\d.]+\*\(?[ab]\*[ab]\)?", record(run)["best"]["expression"])
    product = LEFT * RIGHT
    slope = (product @ TARGET) / (product @ product)
    error = math.sqrt(np.sum((TARGET - slope * product) ** 2) / 39 / (product @ product))
    whole = json.loads(told("summary", run, "--json"))
    assert {*whole} == {"index", "expression"} | {*record(run)["best"]["uncertainty"]} - {"details"}
    (constant,) = whole["constants"]
    np.testing.assert_allclose([constant["value"], constant["standard_error"]], [slope, error], rtol=0.01)
    (constant,) = json.loads(told("summary", run, "--index", "0", "--json"))["constants"]
    np.testing.assert_allclose(constant["standard_error"], TARGET.std(ddof=1) / math.sqrt(40), rtol=0.01)
    assert "coef" in told("summary", run)
    assert json.loads(told("summary", run, "--exact", repr(constant_of(run)), "--json"))["constants"] == []


def constant_of(run: Path) -> float:
    return float(record(run)["best"]["expression"].split("*")[0])


@option("next RUN", "next --box", "next -n", "next --cost", "next --json")
def points_to_measure_are_within_the_box_and_cheap(face: str) -> None:
    run = finished()
    made = json.loads(told("next", run, "--box", "a=1:9", "--box", "b=3", "-n", "2", "--json"))
    assert [(1 <= each["a"] <= 9, each["b"]) for each in made["points"]] == [(True, 3)] * 2
    (within,) = json.loads(told("next", run, "--json"))["points"]
    assert LEFT.min() <= within["a"] <= LEFT.max()
    (dear,) = json.loads(told("next", run, "--box", "a=1:9", "--cost", "1 + a**9", "--json"))["points"]
    assert dear["a"] < made["points"][0]["a"]
    assert "measure at " in told("next", run)


@option("report RUN", "report --out", "report --open", "report --json")
def a_report_is_a_page_of_its_own(face: str) -> None:
    run = finished()
    shown: list[str] = []
    with mock.patch("webbrowser.open", lambda url: shown.append(url) or True):
        assert told("report", run) == "run/report.html\n"
        assert json.loads(told("report", run, "--out", "page.html", "--open", "--json")) == {"file": "page.html"}
    assert shown == [Path("page.html").resolve().as_uri()]
    pages = [Path(name).read_text(encoding="utf-8") for name in ("page.html", "run/report.html")]
    assert all("<svg" in page and not re.search(r'(?:src|href)="http', page) for page in pages)


@option("export RUN|FORMULA", "export --to", "export --index", "export --name", "export --out", "export --json")
def an_export_computes_what_the_formula_does(face: str) -> None:
    run = finished()
    for index, text in enumerate(formulas(run)):
        space: dict[str, Any] = {}
        exec(told("export", run, "--to", "python", "--index", str(index), "--name", "law"), space)
        np.testing.assert_allclose(space["law"](1.5, 1.25), eval(text, {"a": 1.5, "b": 1.25}))
    for to in EXPORTS:
        ended = command("export", "sqrt(a*a + b*b)", "--to", to, "--json")
        if "install" in ended.stderr:  # a library is missing
            continue
        made = json.loads(ended.stdout)
        assert made["to"] == to and made["parameters"] == ["a", "b"] and ("text" in made or "base64" in made)
    assert told("export", run, "--to", "latex", "--out", "f.tex") == ""
    assert Path("f.tex").read_text().strip() == told("export", run, "--to", "latex").strip()


@option("export --dialect")
def sql_is_for_the_database(face: str) -> None:
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE t (a REAL, b REAL)")
        base.execute("INSERT INTO t VALUES (7.5, 2)")
        text = told("export", "a % b + a*b", "--to", "sql", "--dialect", "sqlite")
        assert base.execute(f"SELECT {text} FROM t").fetchone()[0] == 7.5 % 2 + 15
    assert text != told("export", "a % b + a*b", "--to", "sql", "--dialect", "postgres")


@option("predict --times", slow=True)
def a_motion_is_integrated_along_the_times(face: str) -> None:
    times = np.linspace(0, 3, 31)
    np.savetxt("m.csv", np.column_stack([times, np.exp(-times)]), delimiter=",", header="t,x", comments="")
    Path("m.yaml").write_text("data: {path: m.csv}\ndynamics: {time: t}\n")
    with mock.patch.object(dynamics, "find_dynamics", known_search(("-x",))):
        told("evolve", "m.yaml", "--out", "motion")
    Path("start.csv").write_text("x\n2\n")
    made = json.loads(told("predict", "motion", "start.csv", "--times", "0:1:0.25", "--json"))
    np.testing.assert_allclose(made["x"], 2 * np.exp(-np.array(made["t"])), atol=1e-6)
    assert made["t"] == [0, 0.25, 0.5, 0.75, 1]


@option("evolve --precision", "runs show --precision", "predict --mean", "export --dialect", "compile --params")
def no_option_is_taken_without_an_effect(face: str) -> None:
    times = np.linspace(0, 3, 31)
    np.savetxt("m.csv", np.column_stack([times, np.exp(-times)]), delimiter=",", header="t,x", comments="")
    Path("m.yaml").write_text("data: {path: m.csv}\ndynamics: {time: t}\n")
    for digits, text in (("2", "x' = -1.2*x"), ("exact", "x' = -1.23456*x")):
        with mock.patch.object(dynamics, "find_dynamics", known_search(("-1.23456*x",))):
            assert text in told("evolve", "m.yaml", "--out", f"motion{digits}", "--precision", digits)
        shown = told("runs", "show", "motion2", "--precision", digits)
        assert text in shown.rpartition("\n>>>   0")[2] and "dynamics.kind" not in shown
    wrong = (
        (("export", "motion2", "--to", "latex", "--dialect", "sqlite"), "--dialect sqlite: is for --to sql only"),
        (("predict", finished(), "rows.csv", "--mean"), "--mean is for --interval"),
        (("compile", "run", "--params", "b,a"), "--params: is for formulas"),
    )
    for words, message in wrong:
        ended = command(*words)
        assert (ended.exit_code, message in ended.stderr) == (2, True), words


@option("config check CONFIG", "config check --set", "config check --json", "config schema --json")
def a_check_tells_the_rows_and_every_problem(face: str) -> None:
    search = begin()
    assert told("config", "check", search) == "search.yaml: valid; 40 rows of a, b\n"
    assert json.loads(told("config", "check", search, "--json"))["features"] == ["a", "b"]
    wrong = json.loads(told("config", "check", search, "--set", "sed=3", "--set", "stop.seconds=0", "--json", code=2))
    assert [problem.partition(":")[0] for problem in wrong["problems"]] == ["--set sed", "--set stop.seconds"]
    assert json.loads(told("config", "schema", "--json"))["properties"].keys() >= {"data", "seed"}


@option("--version", "--debug", "info --json", "info --clear-cache")
def the_root_tells_of_itself(face: str) -> None:
    assert told("--version") == f"shine {shine.__version__}\n"
    assert "Traceback" in command("--debug", "predict", "nothing", "rows.csv").stderr
    assert "Traceback" not in command("predict", "nothing", "rows.csv").stderr
    with mock.patch.dict("os.environ", SHINE_CACHE_DIR=str(Path("cache").resolve())):
        Path("cache").mkdir(mode=0o700)
        Path("cache", "0" * 64).write_bytes(b"12345")
        assert json.loads(told("info", "--json"))["cache"]["entries"] == 1
        assert json.loads(told("info", "--json", "--clear-cache"))["cache"]["removed"] == 1
        assert not list(Path("cache").iterdir())


# ---- code ----


def compiled(*words: str) -> Any:
    """The function f of a shared library that a formula is compiled to."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler cc")
    files = json.loads(told("compile", *words, "--emit", "shared", "--json"))["files"]
    return ctypes.CDLL(str(Path(next(each for each in files if ".so" in each or ".dylib" in each)).resolve()))


@option("compile FORMULA|GRAPH|RUN", "compile --name", "compile --params", "compile --dtype", "compile --index",
        "compile --out", "compile --json")  # fmt: skip
def compiled_code_computes_what_the_formula_does(face: str) -> None:
    law = compiled("7*a - b", "--name", "law", "--params", "b,a", "--dtype", "int32", "--out", "made").law
    assert (law(2, 1), law(3, 5)) == (5, 32)
    assert {path.name for path in Path("made").iterdir()} >= {"liblaw.so"}
    run = finished()
    for index, text in ((None, record(run)["best"]["expression"]), ("0", formulas(run)[0])):
        of = compiled(str(run), "--out", f"made{index}", *(() if index is None else ("--index", index))).f
        of.restype, of.argtypes = ctypes.c_double, [ctypes.c_double] * text.count("*")
        np.testing.assert_allclose(of(*[1.5] * text.count("*")), eval(text, {"a": 1.5, "b": 1.5}))
    for dtype in choices("compile --dtype"):
        made = json.loads(told("compile", "a*b", "--dtype", dtype, "--emit", "header", "--json"))
        assert [each["dtype"] for each in made["parameters"]] == [dtype] * 2


@option("compile --emit", "compile --target", "compile --cpu", "compile --features", "compile --opt")
def code_is_of_the_kind_and_for_the_processor_that_is_asked_for(face: str) -> None:
    for emit, ending in (("object", ".o"), ("header", ".h"), ("ir", ".ll"), ("asm", ".s"), ("cmake", ".cmake")):
        assert f"f{ending}" in told("compile", "a*b", "--emit", emit).split()
    assert told("compile", "a", "--emit", "ir,asm", "--emit", "header").split() == ["f.ll", "f.s", "f.h"]
    assert "fmul\td0" in _assembly("--target", "aarch64-linux-gnu")
    intel = ("--target", "x86_64-linux-gnu")
    assert "vmulsd" not in _assembly(*intel)
    assert "vmulsd" in _assembly(*intel, "--cpu", "x86-64-v3")
    assert "vmulsd" in _assembly(*intel, "--features", "+avx")
    sizes = [_assembly(*intel, "--opt", level).count("\n") for level in choices("compile --opt")]
    assert sizes[0] > sizes[-1]


def _assembly(*words: str) -> str:
    told("compile", "a*b + a*b", "--emit", "asm", *words)
    return Path("f.s").read_text()


@option("compile --output", "compile --config", "compile --checkpoint", "compile --shape", "compile --cpp-class")
def graphs_have_the_given_outputs_and_shapes(face: str) -> None:
    pytest.importorskip("google.protobuf")
    folder = FIXTURES / "tensor_graphs"
    name = "add_with_checkpoint"
    beside = ("--config", folder / f"{name}.config.pb", "--checkpoint", folder / f"{name}.ckpt")
    made = json.loads(told("compile", folder / f"{name}.pb", *beside, "--emit", "header", "--json"))
    assert made["outputs"]
    assert command("compile", folder / f"{name}.pb", *beside[:2]).exit_code == 2
    open_ = PRODUCT.replace("size: 2", "size: -1", 1)
    Path("g.pbtxt").write_text(f"{open_}{open_[open_.rindex('node') :].replace('z', 'w')}")
    made = json.loads(told("compile", "g.pbtxt", "--output", "z", "--shape", "x=5,3", "--cpp-class", "Net", "--json"))
    assert [each["shape"] for each in made["outputs"]] == [[5, 2]]
    assert "class Net final" in Path("g.hpp").read_text()
    assert command("compile", "g.pbtxt", "--output", "z").exit_code == 2


@option(
    *(
        f"jit {each}"
        for each in ("FORMULA", *["--emit", "--target", "--cpu", "--dtype", "--opt", "--params", "--out", "--json"])
    )
)
def the_code_of_a_formula_is_shown(face: str) -> None:
    sums = ("jit", "a - 2 + 5 + 100", "--dtype", "int32")
    assert "add\tw0, w0, #103" in told(*sums, "--target", "aarch64-linux-gnu")
    assert told(*sums, "--emit", "ir").count("add i32") == 2
    assert told(*sums, "--emit", "opt").count("add i32") == 1
    assert "103" not in told(*sums, "--emit", "opt", "--opt", "O0")
    intel = ("jit", "a*b", "--target", "x86_64-linux-gnu")
    assert "vmulsd" not in told(*intel) and "vmulsd" in told(*intel, "--cpu", "x86-64-v3")
    made = json.loads(told("jit", "a - b", "--params", "b,a", "--emit", "ir", "--json"))
    assert made["parameters"] == ["b", "a"] and 'double %"b", double %"a"' in made["text"]
    told(*intel, "--emit", "obj", "--out", "f.o")
    assert Path("f.o").read_bytes().startswith(b"\x7fELF\x02\x01")
    for dtype, kind in zip(choices("jit --dtype"), ("double", "float", "i64", "i32"), strict=True):
        assert f"define {kind} " in told("jit", "a*b", "--dtype", dtype, "--emit", "ir").replace("fastcc ", "")
    for level in choices("jit --opt"):
        assert "ret" in told("jit", "a*b", "--opt", level)


@option(
    "bench --json", *(f"bench --{each}" for each in ("rows", "population", "primitives", "seed", "plot")), slow=True
)
def evaluators_are_compared_as_asked(face: str) -> None:
    pytest.importorskip("matplotlib")
    settings = ("--population", "7", "--primitives", "add,sin", "--seed", "3")
    made = json.loads(told("bench", "--rows", "50", "60", *settings, "--plot", "speed.png", "--json"))
    assert {each["rows"] for each in made["measurements"]} == {50, 60}
    kept = made["settings"]
    assert (kept["population"], kept["primitives"], kept["seed"]) == (7, ["add", "sin"], 3)
    assert Path("speed.png").read_bytes().startswith(b"\x89PNG")


@option(*(f"mcp --{each}" for each in ("folder", "seconds", "call-seconds", "memory", "searches")))
def a_server_gets_its_limits(face: str) -> None:
    # tests/unit/faces/mcp/test_conversations.py tries what they do to calls.
    server = pytest.importorskip("shine.faces.mcp.server")
    Path("shared").mkdir(mode=0o700)
    with mock.patch.object(server, "serve") as serve:
        limits = ("--seconds", "20", "--call-seconds", "5", "--memory", "1.5", "--searches", "2")
        told("mcp", "--folder", "shared", *limits)
    (desk,) = serve.call_args.args
    assert desk.folder == Path("shared").resolve()
    assert (desk.seconds, desk.call_seconds, desk.memory, desk.searches) == (20, 5, 1.5, 2)
