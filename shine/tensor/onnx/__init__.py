"""ONNX models -> modules, read without the onnx package.

`files` reads a model (`messages`), `tensors` its constants, and `reader` applies the rule of each node's operator
(`rules`).
"""

from shine.tensor.onnx.reader import load_onnx

__all__ = ["load_onnx"]
