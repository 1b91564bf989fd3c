"""Passes: functions from a module to a module of the same meaning that computes it with less."""
