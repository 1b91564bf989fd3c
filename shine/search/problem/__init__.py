"""The problem that a search solves: its settings, rows, noise, loss, primitives and time."""
