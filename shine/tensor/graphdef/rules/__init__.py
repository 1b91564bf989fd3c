"""Rules of TensorFlow's operations: what a node adds to a function."""
