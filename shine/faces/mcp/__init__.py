"""A server of the Model Context Protocol, for agents that search for formulas.

The server (`server`) reads no data itself: each call is a process (`calls`, `worker`) with limits of time and memory,
which reads and writes only below one folder (`places`) and answers briefly (`answers`). `tools` lists the calls.
"""
