"""TensorFlow graphs, with their configuration and their checkpoint -> modules; read without TensorFlow.

`loading` reads a message with the files of `shine.formats.read.graphdef`, cuts it at the feeds (`config`) and lets
`evaluation` apply the `table` of `rules`, one an operation, to a function in the making (`building`). `control` has
branches and loops, `conditions` those of TensorFlow 1. Variables come from a `checkpoint`.
"""

from shine.tensor.graphdef.loading import load_module

__all__ = ["load_module"]
