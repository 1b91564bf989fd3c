"""TensorFlow graphs -> programs: GraphDef files, text and binary, read without TensorFlow.

`files` reads a message (`messages`, `memory`), `order` sorts its nodes, and `reader` applies the rule of each
operation (`operations`, `rules`, `definitions`) to its `values`, with the attributes of the `node`, its `constants` and
`shapes`, and the graph's own `functions`.
"""

from shine.formats.read.graphdef.reader import load_graph

__all__ = ["load_graph"]
