"""Rollouts: systems of differential equations and maps integrated in native code, with their sensitivities."""
