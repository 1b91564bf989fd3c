"""What exports need and what they refuse."""

from __future__ import annotations

TEXTS = ("python", "pandas", "polars", "latex", "json", "excel", "sql", "c")
"""Forms that need no library."""

LIBRARIES = {"sympy": "sympy", "torch": "torch", "jax": "jax", "onnx": "onnx", "graphdef": "google.protobuf"}
"""The library that each other form needs."""

CANNOT_WRITE: dict[str, set[str]] = {}
"""Basic primitives that an export refuses with an ExportError, by the name of the export."""
