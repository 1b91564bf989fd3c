"""Damages graph files in bytes, words and fields, and judges how they are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from shine.base.errors import GraphImportError
from shine.formats.read.protobuf import TYPE_NAMES, messages
from shine.lang.program.interpret import interpret_arrays
from shine.lang.program.program import Program
from shine.tensor.graphdef import load_graph
from shine.tensor.graphdef.files import read_message
from shine.tensor.graphdef.rules.language import ELEMENTWISE

FIXTURES = Path(__file__).parents[1] / "fixtures" / "graphs"

INTERESTING = (0, 1, -1, 2, 3, 7, 127, 128, 255, 1 << 20, 1 << 26, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1)
WORDS = (
    b"node", b"name", b"op", b"input", b"attr", b"key", b"value", b"tensor", b"tensor_shape", b"dim", b"size", b"-1",
    b"{", b"}", b"<", b">", b"[", b"]", b":", b'"', b"'", b"#", b"\\", b"\\377", b"9223372036854775808", b"1e999",
    b"nan", b"DT_FLOAT", b"DT_INT32", b"DT_STRING", b"99", b"^", b":1", b"library", b"function", b"\xff", b"\x00", b"",
)  # fmt: skip


def number(rng: Generator) -> int:
    """A number at some boundary."""
    return int(INTERESTING[rng.integers(len(INTERESTING))])


def damage_bytes(content: bytes, other: bytes, rng: Generator) -> bytes:
    """Change, cut, repeat, insert and exchange bytes."""
    data = bytearray(content)
    for _ in range(rng.geometric(0.6)):
        start = int(rng.integers(len(data) + 1))
        end = min(len(data), start + int(rng.geometric(0.1)))
        match int(rng.integers(7)):
            case 0:
                data[start:end] = rng.bytes(end - start)
            case 1:
                del data[start:end]
            case 2:
                data[start:start] = data[start:end] * int(rng.integers(1, 4))
            case 3:
                data[start:start] = rng.bytes(int(rng.integers(1, 9)))
            case 4 if start < len(data):
                data[start] ^= 1 << int(rng.integers(8))
            case 5:
                data[start:end] = other[start:end]
            case _:
                if rng.random() < 0.2:
                    del data[start:]
    return bytes(data)


def damage_text(content: bytes, other: bytes, rng: Generator) -> bytes:
    """Change, repeat and exchange the words of a text."""
    words = re.findall(rb'\s+|"[^"]*"|\w+|.', content)
    others = re.findall(rb'\s+|"[^"]*"|\w+|.', other)
    for _ in range(rng.geometric(0.6)):
        start = int(rng.integers(len(words) + 1))
        end = min(len(words), start + int(rng.geometric(0.2)))
        match int(rng.integers(6)):
            case 0:
                words[start:end] = [WORDS[rng.integers(len(WORDS))]]
            case 1:
                del words[start:end]
            case 2:
                words[start:start] = words[start:end]
            case 3:
                words[start:start] = [WORDS[rng.integers(len(WORDS))] for _ in range(rng.integers(1, 5))]
            case 4 if others:
                place = int(rng.integers(len(others)))
                words[start:end] = others[place : place + int(rng.geometric(0.1))]
            case _:
                words[start:end] = [str(number(rng)).encode()]
    return b"".join(words)


def damage_node(graph: Any, node: Any, rng: Generator) -> None:
    """Change one thing of a node."""
    nodes = graph.node
    some = nodes[int(rng.integers(len(nodes)))]
    match int(rng.integers(9)):
        case 0:
            node.op = [
                *sorted(ELEMENTWISE),
                "MatMul",
                "PartitionedCall",
                *(f.signature.name for f in graph.library.function),
            ][int(rng.integers(len(ELEMENTWISE) + 2 + len(graph.library.function)))]
        case 1:
            node.input.append(some.name + ("", ":0", ":1", ":z:0", ":99999999")[rng.integers(5)])
        case 2 if node.input:
            node.input[int(rng.integers(len(node.input)))] = ("^" if rng.random() < 0.2 else "") + some.name
        case 3 if node.input:
            del node.input[int(rng.integers(len(node.input)))]
        case 4:
            node.name = some.name if rng.random() < 0.3 else node.name + "'"
        case 5:
            nodes.add().CopyFrom(some)
        case 6 if node.attr:
            key = sorted(node.attr)[int(rng.integers(len(node.attr)))]
            if rng.random() < 0.3:
                del node.attr[key]
            elif rng.random() < 0.3 and key in some.attr:
                node.attr[key].CopyFrom(some.attr[key])
            else:
                node.attr[key].type = list(TYPE_NAMES)[rng.integers(12)]
        case 7 if "value" in node.attr:
            damage_tensor(node.attr["value"].tensor, rng)
        case _:
            shape = node.attr["shape"].shape
            shape.dim.add(size=number(rng))
            shape.unknown_rank = bool(rng.random() < 0.1)


def damage_tensor(tensor: Any, rng: Generator) -> None:
    """Change one thing of a constant."""
    match int(rng.integers(6)):
        case 0:
            tensor.tensor_shape.dim.add(size=number(rng))
        case 1:
            tensor.tensor_content = rng.bytes(int(rng.integers(20)))
        case 2:
            tensor.dtype = list(TYPE_NAMES)[rng.integers(12)]
        case 3:
            tensor.float_val.append(rng.choice([0.0, np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38]))
        case 4:
            tensor.int_val.append(int(np.int32(number(rng) & 0x7FFFFFFF)))
        case _:
            tensor.ClearField(("tensor_content", "float_val", "tensor_shape", "int_val")[rng.integers(4)])


def damage_fields(graph: Any, rng: Generator) -> bytes:
    """Change fields of a graph and of its functions, and write it in either form."""
    for _ in range(rng.geometric(0.6)):
        holders = [graph.node, *(function.node_def for function in graph.library.function)]
        nodes = holders[int(rng.integers(len(holders)))]
        if nodes:
            damage_node(graph, nodes[int(rng.integers(len(nodes)))], rng)
    if rng.random() < 0.3:
        return str(messages().text_format.MessageToString(graph)).encode()
    content: bytes = graph.SerializeToString()
    return content


class Corpus:
    """The intact files, which are damaged."""

    def __init__(self, folder: Path) -> None:
        paths = sorted([*folder.glob("*.pb"), *folder.glob("*.pbtxt")])
        self.contents = [content for content in (path.read_bytes() for path in paths) if len(content) < 20_000]
        self.graphs = [read_message(content) for content in self.contents]
        self.texts = [content for content in self.contents if content.lstrip().startswith(b"node")]

    def file(self, seed: int, position: int) -> bytes:
        """The damaged file of a number."""
        rng = np.random.default_rng([seed, position])
        kind = rng.random()
        if kind < 0.6:
            graph = messages().GraphDef()
            graph.CopyFrom(self.graphs[rng.integers(len(self.graphs))])
            return damage_fields(graph, rng)
        files, damage = (self.contents, damage_bytes) if kind < 0.8 else (self.texts, damage_text)
        return damage(files[rng.integers(len(files))], files[rng.integers(len(files))], rng)


def judged(content: bytes) -> tuple[str, str]:
    """Verdict on how a file is read ('read', 'refused' or 'wrong'), and the message."""
    try:
        program = load_graph(content)
    except GraphImportError as error:
        return "refused", str(error)
    except Exception as error:  # any other exception is a fault
        return "wrong", f"{type(error).__name__}: {error}"
    try:
        run(program)
    except ZeroDivisionError:
        pass
    except Exception as error:
        return "wrong", f"when run: {type(error).__name__}: {error}"
    return "read", ""


def run(program: Program) -> None:
    """Evaluate a small program: a graph that is read must have a value."""
    arrays = []
    for parameter in program.parameters:
        if parameter.value is not None:
            arrays.append(parameter.value)
        else:
            shape = [1 if size is None else size for size in parameter.shape or ()]
            arrays.append(np.ones(shape if np.prod(shape, dtype=float) < 1000 else (), parameter.dtype))
    sizes = [array.size for array in arrays]
    if len(program.statements) < 200 and max(sizes, default=0) < 1000:
        # Arrays of unknown shapes may not broadcast.
        if any(parameter.shape is None or None in parameter.shape for parameter in program.arguments):
            return
        interpret_arrays(program, arrays)
