"""``shine compile``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli.commandline import shine

from shine.aot import EMITTERS
from shine.cli.compile import GRAPHS

CLASSIC = """
node { name: "input" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 2 } } } }
node { name: "hundred" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 105 } } } }
node { name: "less" op: "Sub" input: "input" input: "two" attr { key: "T" value { type: DT_INT32 } } }
node { name: "more" op: "Add" input: "less" input: "hundred" attr { key: "T" value { type: DT_INT32 } } }
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_help_names_every_kind() -> None:
    described = " ".join(shine("compile", "--help").stdout.split())
    assert f"some of {', '.join(EMITTERS)}." in described


def test_an_object_file_and_a_header_are_written_and_named(here: Path) -> None:
    result = shine("compile", "sqrt(a*a + b*b)", "--name", "hypotenuse", "--out", "made/here")
    assert (result.exit_code, result.stdout) == (0, "made/here/hypotenuse.o\nmade/here/hypotenuse.h\n")
    assert "double hypotenuse(double a, double b);" in Path("made/here/hypotenuse.h").read_text()
    assert sorted(path.name for path in Path("made/here").iterdir()) == ["hypotenuse.h", "hypotenuse.o"]


def test_kinds_may_be_listed_or_repeated_and_bring_what_they_need(here: Path) -> None:
    result = shine("compile", "a", "--emit", "ir, asm", "--emit", "cmake", "--emit", "ir")
    assert result.stdout.split() == ["f.ll", "f.s", "f.cmake", "f.o", "f.h"]


def test_the_target_and_the_processor_are_used(here: Path) -> None:
    arguments = ["compile", "a*b", "--target", "riscv64-linux-gnu", "--cpu", "sifive-u74", "--emit", "object", "--json"]
    record = json.loads(shine(*arguments).stdout)
    assert (record["target"], record["cpu"]) == ("riscv64-unknown-linux-gnu", "sifive-u74")
    assert Path("f.o").read_bytes()[18:20] == b"\xf3\0"


def test_json_says_what_was_made(here: Path) -> None:
    record = json.loads(shine("compile", "a // b", "--dtype", "int32", "--params", "b,a", "--json").stdout)
    parameters = [{"name": "b", "dtype": "int32"}, {"name": "a", "dtype": "int32"}]
    assert record["parameters"] == parameters and record["status"] is True
    assert (record["source"], record["emit"], record["files"]) == ("a//b", ["object", "header"], ["f.o", "f.h"])


def test_a_formula_may_begin_with_a_minus(here: Path) -> None:
    assert shine("compile", "--emit", "header", "--", "-a*b").exit_code == 0
    assert "write -- before a formula that begins with a minus" in shine("compile", "-a*b").stderr


def test_the_formula_of_a_run_is_compiled(run: Path) -> None:
    assert shine("compile", run, "--emit", "header").exit_code == 0
    assert "double f(double a, double b);" in Path("f.h").read_text()
    assert " a*b\n" in Path("f.h").read_text()
    assert shine("compile", run / "result.json", "--index", "0", "--emit", "header").exit_code == 0


@pytest.mark.parametrize("suffix", [*GRAPHS, ".txt"])
def test_a_file_is_a_graph(suffix: str, here: Path) -> None:
    pytest.importorskip("google.protobuf")
    Path(f"graph{suffix}").write_text(CLASSIC)
    result = shine("compile", f"graph{suffix}", "--emit", "header,asm", "--target", "aarch64-linux-gnu")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "int32_t f(int32_t input);" in Path("f.h").read_text()
    assert "#103" in Path("f.s").read_text()


def test_outputs_of_a_graph_can_be_chosen(here: Path) -> None:
    pytest.importorskip("google.protobuf")
    Path("graph.pbtxt").write_text(CLASSIC)
    assert shine("compile", "graph.pbtxt", "--output", "more", "--output", "less", "--emit", "header").exit_code == 0
    assert "void f(int32_t input, int32_t *more_out, int32_t *less_out);" in Path("f.h").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a +"], "error: 'a +': "),
        (["sin(a)", "--dtype", "int32"], "error: primitive 'sin' has no meaning"),
        (["a", "--emit", "exe"], "error: --emit exe: is not a kind of output; use some of object,header,"),
        (["a", "--emit", ","], "error: --emit: names nothing"),
        (["a", "--name", "double"], "error: name 'double' is not free for a function in C; 'double_' would do"),
        (["a", "--name", ""], "error: name '' is not free"),
        (["a", "--target", "nonsense-linux"], "error: LLVM has no target 'nonsense-linux'"),
        (["a", "--cpu", "haswel", "--target", "x86_64-linux-gnu"], "error: processor 'haswel' is not one of"),
        (["a", "--features", "+nothing"], "error: feature '+nothing' is not one of"),
        (["a", "--index", "1"], "error: --index is for runs"),
        (["a", "--output", "x"], "error: --output is for graphs"),
        (["none.pbtxt"], "error: none.pbtxt: no such file"),
        (["graph.pb", "--dtype", "int32"], "error: --dtype: is not for graphs"),
        (["graph.pb"], "error: graph.pb: "),
        (["empty"], "error: empty: holds no run"),
        (["a", "--dtype", "float16"], "error: Invalid value for '--dtype'"),
        (["a*b", "--params", "a"], "error: 'a*b': "),
        (["a", "--emit", "shared", "--target", "wasm32"], "error: wasm32 has no shared libraries"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_a_source_that_cannot_be_compiled_is_one_line(arguments: list[str], message: str, here: Path) -> None:
    Path("graph.pb").write_bytes(b"\xff\xff junk")
    Path("empty").mkdir()
    result = shine("compile", *arguments)
    assert result.exit_code == (1 if "shared" in arguments else 2)
    assert result.stdout == "" and result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1 and "--debug" not in result.stderr
    assert not list(here.glob("f.*"))


def test_a_folder_that_cannot_be_made_is_a_failure(here: Path) -> None:
    Path("file").touch()
    result = shine("compile", "a", "--out", "file/folder")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: file/folder: cannot be made: ")


def test_a_python_module_is_written_with_its_library(here: Path) -> None:
    if not any(map(shutil.which, ("cc", "clang", "ld"))):
        pytest.skip("there is no linker")
    assert shine("compile", "a*b", "--emit", "python", "--cpu", "native").stdout.split() == ["f.py", "libf.so"]
