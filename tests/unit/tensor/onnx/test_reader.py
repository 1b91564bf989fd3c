"""Graphs, branches, loops, functions, names, errors, and damaged files of ONNX models."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.damaged_models import ModelCorpus, judged

from shine.base.errors import GraphImportError
from shine.tensor.form.interpreter import interpret
from shine.tensor.onnx import load_onnx
from shine.tensor.onnx.node import batch_shapes

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.slow

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'


def content(text: str, head: str = HEAD) -> bytes:
    data: bytes = onnx.parser.parse_model(head + text).SerializeToString()
    return data


def both(model: bytes, *arguments: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What Shine and ONNX Runtime compute."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model)
    theirs = session.run(None, dict(zip((i.name for i in session.get_inputs()), arguments, strict=True)))
    return list(interpret(load_onnx(model), "main", arguments)), theirs


BRANCH = """
g (float[3] x, bool c) => (float[3] y) {
    two = Constant <value = float {2.0}> ()
    y = If (c) <
        then_branch = a () => (float[3] p) { p = Mul(x, two) },
        else_branch = b () => (float[3] q) { r = Add(x, two) q = Neg(r) }
    >
}"""

LOOP = """
g (float[3] x, int64 n) => (float[3] y) {
    go = Constant <value = bool {1}> ()
    y = Loop (n, go, x) <
        body = b (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
            d = Identity(c)
            f = Cast <to = 1> (i)
            u = Add(s, f)
            t = Mul(u, x)
        }
    >
}"""

FUNCTION = """
g (float[3] x) => (float[3] y) { y = own.twice <by = 3.0> (x) }
<domain: "own", opset_import: ["" : 18]>
twice <by> (a) => (b) { f = Constant <value_float: float = @by> () b = Mul(a, f) }
"""


@pytest.mark.parametrize("condition", [True, False])
def test_branches_capture_values_from_outside(condition):
    x = np.array([1, -2, 3], "f4")
    ours, theirs = both(content(BRANCH), x, np.array(condition))
    np.testing.assert_array_equal(ours[0], theirs[0])


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_loops_carry_their_state(rounds):
    x = np.array([1, -2, 0.5], "f4")
    ours, theirs = both(content(LOOP), x, np.array(rounds))
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_functions_of_the_model_are_written_out():
    head = '<ir_version: 8, opset_import: ["" : 18, "own" : 1]>'
    found = interpret(load_onnx(content(FUNCTION, head)), "main", [np.array([1, 2, 3], "f4")])
    assert found[0].tolist() == [3, 6, 9]


def test_names_of_inputs_and_outputs_are_labels():
    model = onnx.parser.parse_model(HEAD + "g (float[2] x) => (float[2] y) { y = Neg(x) }")
    model.graph.input[0].name = model.graph.node[0].input[0] = "serving/x:0"
    model.graph.output[0].name = model.graph.node[0].output[0] = "Größe"
    module = load_onnx(model.SerializeToString())
    assert set(module.labels.values()) == {"serving/x:0", "Größe"}
    assert module.function("main").parameters[0].name == "serving_x_0"


def test_sizes_with_names_are_given_by_the_caller():
    model = content("g (float[batch, 3] x) => (float[batch, 3] y) { y = Neg(x) }")
    assert load_onnx(model, shapes={"x": (5, 3)}).function("main").results[0].type.shape == (5, 3)
    with pytest.raises(GraphImportError, match=r"its input 'x' has the sizes \['batch', 3\]; give them: shapes="):
        load_onnx(model)
    with pytest.raises(GraphImportError, match=r"its input 'x' has the shape \[None, 3\], and not \[5, 4\]"):
        load_onnx(model, shapes={"x": (5, 4)})
    with pytest.raises(GraphImportError, match="it has no input 'z'; its inputs are x"):
        load_onnx(model, shapes={"z": (5, 4)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("g (float[2] x) => (float[2] y) { y = Hurst(x) }", r"\(Hurst\): the operator is not supported; there are Abs"),
        ("g (float[2] x) => (float[2] y) { z = Neg(x) }", "no node gives its output 'y'"),
        ("g (float[2] x) => (float[2] y) { y = Neg(q) }", "its input 'q' is not computed before"),
        ("g (float[2] x, int64[1] s) => (float[2] y) { y = Reshape(x, s) }", "its shape must be a constant"),
        ("g (float[2] x, float[3] w) => (float[2] y) { y = Add(x, w) }", "cannot be broadcast"),
        ("g (float[2] x) => (float[2] y) { y = Pad <mode = \"odd\"> (x, x) }", "its pads must be"),
        ("g (string[2] x) => (string[2] y) { y = Identity(x) }", "input 'x': elements string are not supported"),
        ("g (float[2] x) => (float[2] y) { y = Concat(x) }", "its attribute axis is missing"),
        ("g (float[2,2] x) => (float[2] y) { y = Conv(x, x) }", "convolutions of 3 and 4 axes are supported"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(text, message):
    with pytest.raises(GraphImportError, match=message):
        load_onnx(content(text))


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
def test_ensembles_of_trees_are_refused_with_the_way_to_compile_them(kind):
    text = f"g (float[2] x) => (float[2] y) {{ y = ai.onnx.ml.TreeEnsemble{kind}(x) }}"
    head = '<ir_version: 8, opset_import: ["" : 9, "ai.onnx.ml" : 1]>'
    with pytest.raises(GraphImportError, match=r"compile it as trees: shine\.trees\.compile\(\"model.onnx\"\)"):
        load_onnx(content(text, head))


def test_old_operator_sets_and_other_files_are_refused(tmp_path: Path):
    with pytest.raises(GraphImportError, match="it uses operator set 9; 13 and later are read"):
        load_onnx(content("g (float[2] x) => (float[2] y) { y = Neg(x) }", '<ir_version: 8, opset_import: ["" : 9]>'))
    for data in (b"", b"hello", b"\x00" * 100, b'{"a": 1}'):
        with pytest.raises(GraphImportError, match="it is no ONNX model"):
            load_onnx(data)
    with pytest.raises(GraphImportError, match="there is no such file"):
        load_onnx(tmp_path / "none.onnx")
    with pytest.raises(GraphImportError, match="it is no file"):
        load_onnx(tmp_path)


def external(folder: Path) -> Path:
    weights = onnx.numpy_helper.from_array(np.arange(6, dtype="f4").reshape(2, 3), "w")
    model = onnx.parser.parse_model(HEAD + "g (float[2,3] x) => (float[2,3] y) { y = Add(x, w) }")
    model.graph.initializer.append(weights)
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    return folder / "m.onnx"


def test_constants_in_a_file_beside_the_model_are_read(tmp_path: Path):
    path = external(tmp_path)
    found = interpret(load_onnx(path), "main", [np.ones((2, 3), "f4")])
    assert found[0].tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(GraphImportError, match=r"lies in the file 'm\.bin'; read the model from its path"):
        load_onnx(path.read_bytes())


@pytest.mark.parametrize("location", ["../m.bin", "/etc/hostname", "none.bin", ""])
def test_constants_outside_of_the_folder_are_not_read(tmp_path: Path, location: str):
    path = external(tmp_path)
    (tmp_path / "inner").mkdir()
    model = onnx.load(path, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    (tmp_path / "inner" / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(GraphImportError, match="there is no such file beside the model"):
        load_onnx(tmp_path / "inner" / "m.onnx")


def networks(nn: Any, torch: Any) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Networks as torch writes them, and the shapes of their inputs."""

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = nn.Sequential(
                nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1)
            )

        def forward(self, x: Any) -> Any:
            return torch.relu(self.inside(x) + x).mean((2, 3))

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mixed, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
            self.norm, self.wide, self.narrow = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, x: Any) -> Any:
            rows, steps, _ = x.shape
            parts = self.mixed(self.norm(x)).reshape(rows, steps, 3, 2, 8).permute(2, 0, 3, 1, 4)
            weights = torch.softmax(parts[0] @ parts[1].transpose(-1, -2) / 8**0.5, -1)
            x = x + self.out((weights @ parts[2]).transpose(1, 2).reshape(rows, steps, 16))
            return x + self.narrow(nn.functional.gelu(self.wide(x)))

    return {
        "mlp": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)), (2, 8)),
        "lenet": (
            nn.Sequential(
                nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 10), nn.Softmax(-1),
            ),
            (2, 1, 28, 28),
        ),
        "residual": (Residual(), (2, 4, 6, 6)),
        "attention": (Attention(), (2, 5, 16)),
        "lstm": (nn.LSTM(3, 4, batch_first=False), (6, 2, 3)),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["mlp", "lenet", "residual", "attention", "lstm"])
@pytest.mark.filterwarnings("ignore")
def test_networks_that_torch_writes_agree_with_onnx_runtime(name: str, tmp_path: Path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network, shape = networks(torch.nn, torch)[name]
    path = tmp_path / "m.onnx"
    torch.onnx.export(network.eval(), (torch.zeros(shape),), path, dynamo=False, opset_version=18)
    x = np.random.default_rng(0).normal(size=shape).astype("f4")
    runtime = pytest.importorskip("onnxruntime").InferenceSession(path)
    for ours, theirs in zip(
        interpret(load_onnx(path), "main", [x]), runtime.run(None, {runtime.get_inputs()[0].name: x}), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_every_fixture_is_read_and_damaged_ones_give_one_error_only():
    corpus = ModelCorpus()
    assert {judged(content)[0] for content in corpus.contents} == {"read"}
    verdicts = Counter(judged(corpus.file(3, number))[0] for number in range(600))
    assert verdicts["wrong"] == 0 and verdicts["read"] > 50 and verdicts["refused"] > 50


INNER = """
g (float[n, 2] x) => (float[n, 2] y) {
    hidden = Tanh(x)
    y = Neg(hidden)
}
"""


def test_values_inside_are_fetched_and_open_batches_get_rows():
    x = np.array([[0.5, -1.0], [2.0, 0.0]], np.float32)
    model = content(INNER)
    assert batch_shapes(model, 2) == {"x": (2, 2)}
    module = load_onnx(model, shapes=batch_shapes(model, 2), fetches=["hidden"])
    assert np.allclose(interpret(module, "main", [x])[0], np.tanh(x), atol=1e-6)
    with pytest.raises(GraphImportError, match="there is no value 'z' to fetch; there are x, hidden, y"):
        load_onnx(model, shapes={"x": (2, 2)}, fetches=["z"])


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16"])
@pytest.mark.parametrize("raw", [True, False])
def test_half_precision_is_computed_in_float32(kind: str, raw: bool):
    elements = getattr(onnx.TensorProto, kind)
    model = onnx.parser.parse_model(HEAD + f"g ({kind.lower()}[3] x) => ({kind.lower()}[3] y) {{ y = Mul(x, w) }}")
    bits = {"FLOAT16": (0x3E00, 0xC100, 0x0001), "BFLOAT16": (0x3FC0, 0xC020, 0x0001)}[kind]
    weights = onnx.TensorProto(name="w", data_type=elements, dims=[3])
    if raw:
        weights.raw_data = np.array(bits, "<u2").tobytes()
    else:
        weights.int32_data.extend(bits)
    model.graph.initializer.append(weights)
    (found,) = interpret(load_onnx(model.SerializeToString()), "main", [np.ones(3, "f4")])
    # 1.5, -2.5 and the smallest number.
    assert found.tolist() == [1.5, -2.5, {"FLOAT16": 2.0**-24, "BFLOAT16": 2.0**-133}[kind]]


def doubling(levels: int) -> bytes:
    """Local functions of which each calls the next twice."""
    functions = "".join(
        f'<domain: "own", opset_import: ["" : 18, "own" : 1]>\n'
        f"f{level} (a) => (c) {{ b = own.f{level + 1} (a) c = own.f{level + 1} (b) }}\n"
        for level in range(levels)
    )
    last = f'<domain: "own", opset_import: ["" : 18]>\nf{levels} (a) => (b) {{ b = Neg(a) }}\n'
    head = '<ir_version: 8, opset_import: ["" : 18, "own" : 1]>'
    return content(f"g (float[1] x) => (float[1] y) {{ y = own.f0 (x) }}\n{functions}{last}", head)


def test_functions_that_call_others_twice_are_within_one_budget():
    assert len(load_onnx(doubling(5)).functions["main"].body) == 32
    with pytest.raises(GraphImportError, match="more than 120000 nodes, with those of called functions"):
        load_onnx(doubling(31))


@pytest.mark.parametrize("count", [0, 1, 3, 1 << 23])
def test_a_tile_is_a_few_operations(count):
    model = content(
        f"g (float[2, 1] x) => (float[2, n] y) {{ r = Constant <value = int64[2] {{1, {count}}}> () y = Tile(x, r) }}"
    )
    (function,) = load_onnx(model).functions.values()
    assert len(function.body) < 8 and function.result_types[0].shape == (2, count)


def test_a_large_constant_of_one_number_is_read():
    model = content(
        f"g (float x) => (float[n] y) {{ s = Constant <value = int64[1] {{{1 << 25}}}> ()"
        " c = ConstantOfShape(s) y = Add(c, x) }"
    )
    assert load_onnx(model).functions["main"].result_types[0].shape == (1 << 25,)


def test_constants_that_are_made_are_within_one_budget(monkeypatch):
    monkeypatch.setattr("shine.tensor.frontend.graph_builder.MOST_ELEMENTS", 1 << 20)
    nodes = " ".join(f"r{i} = Range(a, z, d)" for i in range(40))
    model = content(
        "g (float x) => (int64[n] r0) { a = Constant <value = int64 {0}> () d = Constant <value = int64 {1}> ()"
        f" z = Constant <value = int64 {{{1 << 15}}}> () {nodes} }}"
    )
    with pytest.raises(GraphImportError, match="constants of more than 1048576 elements"):
        load_onnx(model)


@pytest.mark.parametrize("location", ["a\0b", "x" * 5000, "../" * 2000, "loop", "", "/", "."])
def test_a_location_that_cannot_be_is_told_in_one_line(tmp_path, location):
    (tmp_path / "loop").symlink_to("loop")
    model = onnx.load_from_string(content("g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { y = Add(x, c) }"))
    (constant,) = model.graph.initializer
    constant.ClearField("raw_data")
    constant.ClearField("float_data")
    constant.data_location = 1
    constant.external_data.add(key="location", value=location)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(GraphImportError, match="there is no such file beside the model") as raised:
        load_onnx(tmp_path / "m.onnx")
    assert len(str(raised.value)) < 600
