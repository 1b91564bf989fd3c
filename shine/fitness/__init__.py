"""Losses, and what evaluators of populations measure and promise."""
