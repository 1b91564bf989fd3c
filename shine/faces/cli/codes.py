"""Exit codes of the command line."""

FAILURE = 1
"""Something failed: a file cannot be written, an extra is not installed, a reader of the output left early."""
USAGE = 2
"""The arguments, the configuration, the data or the run they name are wrong."""
INTERRUPTED = 130
"""Ctrl-C. Other signals that ask a process to end give 128 and their number too: 143 for SIGTERM."""
