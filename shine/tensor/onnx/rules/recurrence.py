"""Recurrent layers, written out step by step: sequences have static lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shine.base.errors import GraphImportError
from shine.tensor.compositions.activations import activation
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand
from shine.tensor.onnx.node import Node

MOST_STEPS = 512
"""Steps that are written out."""


@dataclass(frozen=True, eq=False)
class Layer:
    """One direction of a layer.

    Parameters
    ----------
    b : GraphBuilder
    parts : list of Operand
        For each gate, the input's part at all steps: steps x batch x units.
    weights : list of Operand
        For each gate, units x units.
    biases : list of Operand
        For each gate, the summand of the state's part.
    reset_first : bool
        Whether a GRU applies its reset gate before the product.
    """

    b: GraphBuilder
    parts: list[Operand]
    weights: list[Operand]
    biases: list[Operand]
    reset_first: bool

    def gate(self, number: int, step: int, state: Operand) -> Operand:
        """The sum that a gate's function gets."""
        return self.b.add(self.at(number, step), self.of_state(number, state))

    def at(self, number: int, step: int) -> Operand:
        """The input's part."""
        part = self.parts[number]
        _, batch, units = part.shape
        line = self.b.slice(part, start=(step, 0, 0), stop=(step + 1, batch, units))
        return self.b.reshape(line, shape=(batch, units))

    def of_state(self, number: int, state: Operand) -> Operand:
        """The state's part."""
        return self.b.add(self.b.dot(state, self.weights[number]), self.biases[number])

    def sigmoid(self, x: Operand) -> Operand:
        """The function of most gates."""
        return Operand(activation(self.b.builder, "sigmoid", x.value))


Cell = Callable[[Layer, int, Operand, Operand], tuple[Operand, Operand]]
"""Layer, step, hidden state, cell state -> the next two."""


def _lstm(layer: Layer, step: int, hidden: Operand, cell: Operand) -> tuple[Operand, Operand]:
    """Gates: input, output, forget, cell."""
    b = layer.b
    let_in, let_out, keep = (layer.sigmoid(layer.gate(i, step, hidden)) for i in range(3))
    cell = b.add(b.mul(keep, cell), b.mul(let_in, b.tanh(layer.gate(3, step, hidden))))
    return b.mul(let_out, b.tanh(cell)), cell


def _gru(layer: Layer, step: int, hidden: Operand, cell: Operand) -> tuple[Operand, Operand]:
    """Gates: update, reset, hidden."""
    b = layer.b
    update, reset = (layer.sigmoid(layer.gate(i, step, hidden)) for i in range(2))
    past = layer.of_state(2, b.mul(reset, hidden)) if layer.reset_first else b.mul(reset, layer.of_state(2, hidden))
    new = b.tanh(b.add(layer.at(2, step), past))
    return b.add(b.mul(b.sub(b.like(update, 1), update), new), b.mul(update, hidden)), cell


def _layer(cell: Cell, gates: int, activations: tuple[str, ...]) -> Callable[[Node], list[Operand]]:
    return lambda node: _run(node, cell, gates, activations)


def _run(node: Node, cell: Cell, gates: int, activations: tuple[str, ...]) -> list[Operand]:
    b, x, weights = node.b, node.input(0), node.input(1)
    direction = node.get("direction", "forward")
    count = 2 if direction == "bidirectional" else 1
    _check(node, x, weights, direction, activations * count)
    steps, batch, _ = x.shape
    units = weights.shape[1] // gates
    hiddens, cells, sequences = [], [], []
    for number in range(count):
        layer = _direction(node, number, gates, units)
        hidden, state = (_initial(node, place, number, batch, units) for place in (5, 6))
        backwards = direction == "reverse" or number == 1
        made: dict[int, Operand] = {}
        for step in reversed(range(steps)) if backwards else range(steps):
            hidden, state = cell(layer, step, hidden, state)
            made[step] = b.reshape(hidden, shape=(1, 1, batch, units))
        sequences.append(b.concatenate(*(made[step] for step in range(steps)), axis=0))
        hiddens.append(b.reshape(hidden, shape=(1, batch, units)))
        cells.append(b.reshape(state, shape=(1, batch, units)))
    joined = b.concatenate(*sequences, axis=1), b.concatenate(*hiddens, axis=0), b.concatenate(*cells, axis=0)
    return list(joined[: 3 if gates == 4 else 2])


def _check(node: Node, x: Operand, weights: Operand, direction: str, activations: tuple[str, ...]) -> None:
    """Refuse unsupported attributes and inputs."""
    if direction not in ("forward", "reverse", "bidirectional"):
        raise GraphImportError(f"its direction {direction!r} is not one of forward, reverse, bidirectional")
    given = tuple(name.lower() for name in node.get("activations", activations))
    if given != activations:
        raise GraphImportError(f"its activations are {', '.join(given)}; only {', '.join(activations)} are supported")
    for name in ("clip", "layout", "input_forget"):
        if node.attributes.get(name):
            raise GraphImportError(f"its attribute {name} is not supported")
    if node.optional(7) is not None:
        raise GraphImportError("its peepholes are not supported")
    if x.rank != 3 or weights.rank != 3 or not 0 < x.shape[0] <= MOST_STEPS:
        raise GraphImportError(f"its input has the shape {list(x.shape)}; 1 to {MOST_STEPS} steps are supported")
    lengths = node.optional(4)
    if lengths is not None and (lengths.known is None or (lengths.known != x.shape[0]).any()):
        raise GraphImportError("its sequences have other lengths than its input; that is not supported")


def _direction(node: Node, number: int, gates: int, units: int) -> Layer:
    b, x = node.b, node.input(0)

    def part(place: int, first: int, rows: int) -> Operand:
        """Some rows of a direction's weights."""
        whole = node.input(place)
        width = whole.shape[2:]
        start, stop = (number, first, *(0 for _ in width)), (number + 1, first + rows, *width)
        return b.reshape(b.slice(whole, start=start, stop=stop), shape=(rows, *width))

    def turned(place: int, gate: int) -> Operand:
        return b.transpose(part(place, gate * units, units), permutation=(1, 0))

    has_bias = node.optional(3) is not None
    zero = b.like(x, 0)
    inputs, biases = [], []
    for gate in range(gates):
        along = b.dot(x, turned(1, gate))
        inputs.append(b.add(along, part(3, gate * units, units)) if has_bias else along)
        biases.append(part(3, (gates + gate) * units, units) if has_bias else zero)
    weights = [turned(2, gate) for gate in range(gates)]
    return Layer(b, inputs, weights, biases, not node.get("linear_before_reset", 0))


def _initial(node: Node, place: int, number: int, batch: int, units: int) -> Operand:
    b, given = node.b, node.optional(place)
    if given is None:
        found = b.broadcast(b.like(node.input(0), 0), shape=(batch, units))
    else:
        part = b.slice(given, start=(number, 0, 0), stop=(number + 1, batch, units))
        found = b.reshape(part, shape=(batch, units))
    return found


RECURRENCE: dict[str, Callable[[Node], Operand | Sequence[Operand]]] = {
    "RNN": _layer(lambda layer, step, hidden, cell: (layer.b.tanh(layer.gate(0, step, hidden)), cell), 1, ("tanh",)),
    "LSTM": _layer(_lstm, 4, ("sigmoid", "tanh", "tanh")),
    "GRU": _layer(_gru, 3, ("sigmoid", "tanh")),
}
