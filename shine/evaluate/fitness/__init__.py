"""Losses, and the protocols of evaluators of populations."""
