"""TensorFlow graphs as programs: GraphDef files, text and binary, read without TensorFlow."""

from shine.frontends.graphdef.reader import load_graph

__all__ = ["load_graph"]
