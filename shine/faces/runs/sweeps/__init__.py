"""Sweeps: one configuration with many settings."""
