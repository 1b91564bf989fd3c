"""Data sets for evaluators, and how columns of a file become one."""
