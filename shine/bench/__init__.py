"""Interpreted against compiled: how fast Shine's tiers and other people's evaluators score one population.

Every evaluator gets the same individuals and the same rows, and its losses are compared with the reference tier's in
the very run that is timed.
"""

from shine.bench.checks import Agreement
from shine.bench.contenders import TIERS, Compile, Contender
from shine.bench.peers import PEERS
from shine.bench.run import CONTENDERS, Measurement, Report, Settings, benchmark
from shine.bench.table import report_text

__all__ = [
    "CONTENDERS", "PEERS", "TIERS", "Agreement", "Compile", "Contender", "Measurement", "Report", "Settings",
    "benchmark", "report_text",
]  # fmt: skip
