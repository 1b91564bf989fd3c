"""Graphs of TensorFlow as text."""

from __future__ import annotations

TYPES = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "int32": "DT_INT32", "int64": "DT_INT64", "bool": "DT_BOOL"}
"""TensorFlow's names of types."""


def node(name: str, op: str, *inputs: str, **attributes: str) -> str:
    """A node; attributes are types, or AttrValues as text."""
    reads = "".join(f'input: "{each}" ' for each in inputs)
    texts = {key: TYPES.get(value, value) for key, value in attributes.items()}
    values = "".join(
        f'attr {{ key: "{key}" value {{ {f"type: {text}" if text.startswith("DT_") else text} }} }} '
        for key, text in texts.items()
    )
    return f'node {{ name: "{name}" op: "{op}" {reads}{values}}}\n'
