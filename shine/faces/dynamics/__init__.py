"""Dynamics for users: an estimator, runs of the command line, reports."""
