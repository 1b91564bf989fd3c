"""``shine compile``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli.commandline import shine

from shine.aot import FormulaCode

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
    assert f"some of {', '.join(FormulaCode.emitters)}." in described


def test_a_formula_may_begin_with_a_minus(here: Path) -> None:
    assert shine("compile", "--emit", "header", "--", "-a*b").exit_code == 0
    assert "write -- before a formula that begins with a minus" in shine("compile", "-a*b").stderr


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt", ".txt"])
def test_a_file_is_a_graph(suffix: str, here: Path) -> None:
    pytest.importorskip("google.protobuf")
    Path(f"graph{suffix}").write_text(CLASSIC)
    result = shine("compile", f"graph{suffix}", "--emit", "header,asm", "--target", "aarch64-linux-gnu")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "int32_t f(int32_t input);" in Path("f.h").read_text()
    assert "#103" in Path("f.s").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a +"], "error: 'a +': "),
        (["a", "--emit", "exe"], "error: --emit exe: is not a kind of output; use some of object,header,"),
        (["a", "--name", "double"], "error: name 'double' is not free for a function in C; 'double_' would do"),
        (["a", "--target", "nonsense-linux"], "error: LLVM has no target 'nonsense-linux'"),
        (["a", "--index", "1"], "error: --index is for runs"),
        (["a", "--output", "x"], "error: --output is for graphs"),
        (["none.pbtxt"], "error: none.pbtxt: no such file"),
        (["graph.pb", "--dtype", "int32"], "error: --dtype: is not for graphs"),
        (["empty"], "error: empty: holds no run"),
        (["a", "--dtype", "float16"], "error: --dtype: must be one of float64, "),
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


TENSORS = """module @product

func @main: (<2 x 3 x f32>, <3 x 2 x f32>) -> <2 x 2 x f32> {
'entry(%x: <2 x 3 x f32>, %y: <3 x 2 x f32>):
    %z = dot %x: <2 x 3 x f32>, %y: <3 x 2 x f32>
    return %z: <2 x 2 x f32>
}
"""


def test_a_tensor_program_has_the_name_of_its_file_and_a_class(here: Path) -> None:
    Path("my-net.txt").write_text(TENSORS)
    result = shine("compile", "my-net.txt", "--cpp-class", "foo::bar::MatMulComp", "--out", "made")
    assert (result.exit_code, result.stdout.split()) == (0, ["made/my_net.o", "made/my_net.h", "made/my_net.hpp"])
    assert "class MatMulComp final" in Path("made/my_net.hpp").read_text()
    assert " * my-net.txt" in Path("made/my_net.h").read_text()


def test_json_says_what_was_made_of_a_tensor_program(here: Path) -> None:
    Path("net.txt").write_text(TENSORS)
    record = json.loads(shine("compile", "net.txt", "--name", "g", "--emit", "header,asm", "--json").stdout)
    assert (record["name"], record["class"], record["files"]) == ("g", None, ["g.h", "g.s"])
    assert record["parameters"][1] == {"name": "y", "dtype": "float32", "shape": [3, 2]}
    assert record["outputs"] == [{"name": "z", "dtype": "float32", "shape": [2, 2]}]
    assert isinstance(record["arena_bytes"], int)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.txt", "--emit", "bench"], "error: --emit bench: is not a kind of output; use some of object,header,ir,"),
        (["net.txt", "--cpp-class", "a-b"], "error: 'a-b' is no name for a class in C++; write one like foo::bar::"),
        (["net.txt", "--target", "nvptx64-nvidia-cuda"], "error: nvptx64-nvidia-cuda has no object files; emit ptx"),
        (["net.txt", "--config", "c.pbtxt"], "error: --config is for graphs of TensorFlow, and net.txt is none"),
        (["net.txt", "--shape", "x=2,3"], "error: --shape is for graphs of TensorFlow and ONNX, and net.txt is none"),
        (["net.txt", "--shape", "x:2"], "error: --shape x:2: write a name and sizes, such as --shape input=1,28,28"),
        (["net.txt", "--index", "1"], "error: --index: is not for graphs"),
        (["damaged.txt"], "error: damaged.txt: line 1, column 8: "),
        (["a*b", "--config", "c.pbtxt"], "error: --config is for graphs, and there is no file 'a*b'"),
        (["a*b", "--cpp-class", "A"], "error: --cpp-class is for graphs, and there is no file 'a*b'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_a_tensor_program_that_cannot_be_compiled_is_one_line(arguments, message: str, here: Path) -> None:
    Path("net.txt").write_text(TENSORS)
    Path("damaged.txt").write_text("module @!")
    result = shine("compile", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr and len(result.stderr.splitlines()) == 1


PRODUCT = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
node { name: "y" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 3 } dim { size: 2 } } } } }
node { name: "z" op: "MatMul" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
"""


@pytest.mark.parametrize("file", ["graph.pbtxt", "graph.txt"])
def test_a_graph_of_tensors_needs_no_option(file: str, here: Path) -> None:
    pytest.importorskip("google.protobuf")
    Path(file).write_text(PRODUCT)
    result = shine("compile", file, "--output", "z", "--emit", "header")
    assert (result.exit_code, result.stdout) == (0, "graph.h\n")
    assert "float z[2][2]" in Path("graph.h").read_text()


def test_shapes_that_a_graph_leaves_open_are_given(here: Path) -> None:
    pytest.importorskip("google.protobuf")
    open_ = PRODUCT.replace("dim { size: 2 } dim { size: 3 }", "dim { size: -1 } dim { size: 3 }")
    Path("graph.pbtxt").write_text(open_)
    assert "x" in shine("compile", "graph.pbtxt").stderr
    result = shine("compile", "graph.pbtxt", "--shape", "x=5,3", "--shape", "y=3,2", "--emit", "header")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "float z[5][2]" in Path("graph.h").read_text()
    assert shine("compile", "graph.pbtxt", "--shape", "x=7,3", "--emit", "header").exit_code == 0
    assert "float z[7][2]" in Path("graph.h").read_text()
    unknown = shine("compile", "graph.pbtxt", "--shape", "w=1")
    assert "there is no feed 'w' to give a shape; there are x, y" in unknown.stderr


@pytest.mark.parametrize("file", ["graph.pbtxt", "graph.txt"])
def test_an_elementwise_graph_has_a_class_if_it_is_wanted(file: str, here: Path) -> None:
    pytest.importorskip("google.protobuf")
    shape = 'DT_INT32 } } attr { key: "shape" value { shape { dim { size: 3 } } } } }'
    Path(file).write_text(CLASSIC.replace("DT_INT32 } } }", shape, 1))
    assert shine("compile", file, "--cpp-class", "Adder").stdout.split() == ["graph.o", "graph.h", "graph.hpp"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["graph.pbtxt", "--config", "absent"], "error: graph.pbtxt: config absent: it cannot be read"),
        (["graph.pbtxt", "--config", "junk", "--output", "z"], "error: --config: names outputs and shapes; leave out"),
        (["graph.pbtxt", "--checkpoint", "absent"], "error: graph.pbtxt: checkpoint absent.index: "),
        (["graph.pbtxt", "--output", "none"], "error: graph.pbtxt: "),
        (["net.pt2"], "error: net.pt2: PyTorch's files hold pickled objects"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_a_graph_of_tensors_that_cannot_be_read_is_one_line(arguments, message: str, here: Path) -> None:
    pytest.importorskip("google.protobuf")
    Path("graph.pbtxt").write_text(PRODUCT)
    for name in ("junk", "net.pt2", "net.onnx"):
        Path(name).write_bytes(b"\xff\xff junk")
    result = shine("compile", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr and len(result.stderr.splitlines()) == 1
