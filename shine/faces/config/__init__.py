"""The YAML file of a run as validated types; every problem is found before anything runs."""

from shine.faces.config.models import Config, DataSettings, DynamicsSection, GraphGuess, LlvmFunction
from shine.faces.config.reading import (
    AnyJob,
    DynamicsJob,
    Job,
    config_values,
    dump_config,
    is_dynamics,
    read_any_job,
    read_config,
    read_dynamics,
    read_job,
    schema,
    with_formulas,
)
from shine.search.problem.settings import FitnessSettings

__all__ = [
    "AnyJob",
    "Config",
    "DataSettings",
    "DynamicsJob",
    "DynamicsSection",
    "FitnessSettings",
    "GraphGuess",
    "Job",
    "LlvmFunction",
    "config_values",
    "dump_config",
    "is_dynamics",
    "read_any_job",
    "read_config",
    "read_dynamics",
    "read_job",
    "schema",
    "with_formulas",
]
