"""Shared basics: errors, stages of a run, types of arrays, safe files, executors."""
