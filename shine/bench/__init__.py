"""A comparison of evaluators: how fast Shine's tiers and other libraries score one population.

Every evaluator gets the same individuals and the same rows, and the losses of the timed run are compared with those of
the reference tier.
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
