"""The YAML file of a run as validated types; every problem is found before anything runs."""

from shine.faces.config.models import Config, DataSettings, GraphGuess, LlvmFunction
from shine.faces.config.reading import Job, config_values, dump_config, read_config, read_job, schema, with_formulas
from shine.search.problem.settings import FitnessSettings

__all__ = [
    "Config",
    "DataSettings",
    "FitnessSettings",
    "GraphGuess",
    "Job",
    "LlvmFunction",
    "config_values",
    "dump_config",
    "read_config",
    "read_job",
    "schema",
    "with_formulas",
]
