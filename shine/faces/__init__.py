"""Faces: evolve(), estimators, DEAP, the command line, configurations, runs."""
