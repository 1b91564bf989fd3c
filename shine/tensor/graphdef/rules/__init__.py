"""Rules of TensorFlow's operations: the instructions that a node adds to a function."""
