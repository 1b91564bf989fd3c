"""Damages ONNX models, and judges how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from helpers.damaged_graphs import damage_bytes
from helpers.damaged_modules import run
from numpy.random import Generator

from shine.base.errors import GraphImportError
from shine.tensor.onnx import load_onnx
from shine.tensor.onnx.files import messages

FIXTURES = Path(__file__).parents[1] / "fixtures" / "onnx"


class ModelCorpus:
    """The intact models, one of which is damaged."""

    def __init__(self) -> None:
        self.contents = [path.read_bytes() for path in sorted(FIXTURES.glob("*.onnx"))]

    def file(self, seed: int, position: int) -> bytes:
        """The damaged model of a number: its bytes, or the fields of its messages."""
        rng = np.random.default_rng([seed, position])
        content, other = (self.contents[int(i)] for i in rng.integers(len(self.contents), size=2))
        if rng.random() < 0.5:
            return damage_bytes(content, other, rng)
        model = messages()["ModelProto"].FromString(content)
        for _ in range(rng.geometric(0.6)):
            damage_field(model, rng)
        damaged: bytes = model.SerializeToString()
        return damaged


WORDS = ("", "x", "y", "Neg", "Add", "Reshape", "Conv", "If", "Loop", "axis", "own", "SAME_UPPER", "bidirectional")
NUMBERS = (0, 1, -1, 2, 3, 7, 10, 11, 255, -(2**31), 2**31 - 1, 2**63 - 1, -(2**63))


def damage_field(message: Any, rng: Generator) -> None:
    """Change a field of a message, or of one inside it."""
    fields = message.ListFields()
    if not fields:
        return
    field, value = fields[int(rng.integers(len(fields)))]
    repeated = not hasattr(value, "ListFields") and not isinstance(value, int | float | str | bytes)
    if repeated and rng.random() < 0.3:
        place = int(rng.integers(len(value)))
        if rng.random() < 0.5:
            del value[place]
        else:
            value.append(value[place])
    elif field.message_type is not None:
        damage_field(value[int(rng.integers(len(value)))] if repeated else value, rng)
    elif rng.random() < 0.15:
        message.ClearField(field.name)
    else:
        place = int(rng.integers(len(value))) if repeated else -1
        changed = damaged_value(value[place] if repeated else value, field, rng)
        if repeated:
            value[place] = changed
        else:
            setattr(message, field.name, changed)


def damaged_value(value: Any, field: Any, rng: Generator) -> Any:
    """Another value of a field's type."""
    if isinstance(value, str):
        return str(rng.choice(WORDS))
    if isinstance(value, bytes):
        return damage_bytes(value, b"NOTSET", rng)
    if isinstance(value, float):
        return float(rng.choice([0.0, 1.0, -1.0, 1e38, np.inf, np.nan]))
    number = NUMBERS[int(rng.integers(len(NUMBERS)))] if rng.random() < 0.6 else value + int(rng.integers(-2, 3))
    limit = 2**63 if field.cpp_type == field.CPPTYPE_INT64 else 2**31
    return max(min(number, limit - 1), 0 if field.cpp_type == field.CPPTYPE_UINT64 else -limit)


def judged(content: bytes) -> tuple[str, str]:
    """Verdict on how a model is read ('read', 'refused' or 'wrong'), and the message."""
    try:
        module = load_onnx(content)
    except GraphImportError as error:
        return "refused", str(error)
    except Exception as error:  # any other exception is a fault
        return "wrong", f"{type(error).__name__}: {error}"
    try:
        run(module)
    except Exception as error:
        return "wrong", f"when run: {type(error).__name__}: {error}"
    return "read", ""
