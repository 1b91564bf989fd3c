"""TensorFlow's graphs -> modules and programs, read without TensorFlow.

`files` reads a message, `order` sorts its nodes, and `evaluation` applies the rule of each operation (`table`, `rules`)
to the `node`, its `constants` and the graph's own `functions`. `loading` makes modules, for feeds and fetches that
`config` reads; `programs` makes programs of elementwise graphs.
"""

from shine.tensor.graphdef.loading import load_module
from shine.tensor.graphdef.programs import load_graph

__all__ = ["load_graph", "load_module"]
