"""The base for forms with statements or nodes: C, torch, JAX, ONNX, GraphDef.

`straightline` lists the steps of a formula, each value once. `dialect` writes them in a programming language, and
`array_library` as a module of Python; a graph of nodes is made by running them (`StraightLine.run`) with operations
that add nodes.
"""
