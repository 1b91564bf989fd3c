"""Sources of tensor programs: files and objects of each format, their options, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shine.tensor
from shine.base.errors import FormError, GraphImportError
from shine.tensor.loading import ENDINGS, READERS, format_of

DOUBLE = """module @double

func @main: (<3 x f32>) -> <3 x f32> {
'entry(%x: <3 x f32>):
    %y = add %x: <3 x f32>, %x: <3 x f32>
    return %y: <3 x f32>
}
"""

GRAPHS = Path(__file__).parents[2] / "fixtures" / "tensor_graphs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "two times.txt").write_text(DOUBLE)
    return tmp_path


@pytest.mark.parametrize("source", [DOUBLE, f"\n  {DOUBLE}", DOUBLE.encode(), shine.tensor.module_of(DOUBLE)])
def test_text_bytes_and_modules_are_loaded(source) -> None:
    function = shine.tensor.load(source)
    assert function.name == "double_" and function([1, 2, 3]).tolist() == [2, 4, 6]


def test_a_file_names_the_function(folder: Path) -> None:
    for path in (folder / "two times.txt", str(folder / "two times.txt")):
        function = shine.tensor.load(path)
        assert (function.name, function.description) == ("two_times", "two times.txt")
        assert function([1, 2, 3]).tolist() == [2, 4, 6]


@pytest.mark.parametrize("source", ["", " \n", b"", b"\n"])
def test_an_empty_source_is_refused(source: str | bytes) -> None:
    with pytest.raises(GraphImportError, match="the source is empty"):
        shine.tensor.load(source)


def test_a_function_of_the_module_is_chosen() -> None:
    with pytest.raises(FormError, match="there is no function 'other'"):
        shine.tensor.load(DOUBLE, "other")


def test_a_graph_of_tensorflow_has_options() -> None:
    pytest.importorskip("google.protobuf")
    path = GRAPHS / "matmul_and_add.pbtxt"
    with np.load(GRAPHS / "matmul_and_add.npz") as arrays:
        x, y, product = (arrays[name] for name in ("in/x_hold", "in/y_hold", "out/x_y_prod"))
    for options in (
        {"config": GRAPHS / "matmul_and_add.config.pbtxt"},
        {"feeds": {"x_hold": (2, 2), "y_hold": (2, 2)}, "fetches": ["x_y_prod", "x_y_sum"]},
    ):
        function = shine.tensor.load(path, **options)
        np.testing.assert_allclose(function(x_hold=x, y_hold=y)[0], product)
    from_bytes = shine.tensor.load(
        path.read_bytes(), format="graphdef", feeds=["x_hold", "y_hold"], fetches=["x_y_sum"]
    )
    np.testing.assert_allclose(from_bytes(x, y), x + y)


def test_a_model_of_onnx_is_loaded(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    tensors = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in
               (("x", (2, 3)), ("y", (3, 2)), ("z", (2, 2)))]  # fmt: skip
    node = onnx.helper.make_node("MatMul", ["x", "y"], ["z"])
    graph = onnx.helper.make_graph([node], "g", tensors[:2], tensors[2:])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "product.onnx"
    )
    function = shine.tensor.load(tmp_path / "product.onnx")
    x, y = np.arange(1, 7, dtype="float32").reshape(2, 3), np.arange(7, 13, dtype="float32").reshape(3, 2)
    assert function(x=x, y=y).tolist() == [[58, 64], [139, 154]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # torch's own, of its own functions
def test_a_program_of_torch_is_loaded() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval(), torch.randn(2, 4)
    function = shine.tensor.load(torch.export.export(model, (x,)))
    with torch.no_grad():
        np.testing.assert_allclose(function(x), model(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ending", ENDINGS)
def test_endings_tell_the_format(ending: str) -> None:
    assert format_of(Path(f"model{ending.upper()}")) == ENDINGS[ending] and ENDINGS[ending] in READERS


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("absent.txt", {}, GraphImportError, "absent.txt: cannot be read: No such file"),
        ("net.pt2", {}, GraphImportError, "net.pt2: PyTorch's files hold pickled objects, which can run any code"),
        (b"", {"format": "torch"}, GraphImportError, "a program of torch.export.export(model, inputs) is needed"),
        ("junk.bin", {}, GraphImportError, "junk.bin: its ending says nothing; name the format, one of graphdef, onnx"),
        (b"\xff", {}, GraphImportError, "bytes do not say what they are; name the format"),
        (b"\xff", {"format": "text"}, GraphImportError, "the text of a module is UTF-8, but byte 0 is not"),
        (7, {}, TypeError, "7 is no tensor program; give a file, bytes, a module, its text, or an ExportedProgram"),
        (None, {}, TypeError, "None is no tensor program"),
        (DOUBLE, {"format": "tflite"}, ValueError, "unknown format 'tflite'; use one of graphdef, onnx, torch, text"),
        (DOUBLE, {"config": "c"}, TypeError, "the format text has no option 'config'; it has none"),
        ("model.pb", {"sizes": {}}, TypeError, "the format graphdef has no option 'sizes'; it has feeds, fetches"),
        (shine.tensor.module_of(DOUBLE), {"feeds": []}, TypeError, "a module has no option 'feeds'; it has none"),
        ("module @!", {}, FormError, "line 1, column 8"),
    ],
)
def test_other_sources_are_refused(source, options, error, message, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("junk.bin").write_bytes(b"\0junk")
    with pytest.raises(error) as caught:
        shine.tensor.load(source, **options)
    assert message in str(caught.value)
