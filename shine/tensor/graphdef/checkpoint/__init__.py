"""Checkpoints of TensorFlow (bundles of tensors), read without TensorFlow and verified."""
