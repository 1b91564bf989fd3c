"""The configuration as YAML, and its JSON schema."""

from __future__ import annotations

from typing import Any

import yaml

from shine.faces.config.models import Config
from shine.faces.config.nodes import add_resolvers


def schema() -> dict[str, Any]:
    """The JSON schema of the configuration, for editors and documentation."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}


class _Dumper(yaml.SafeDumper):
    """Quotes text that a reader of YAML 1.1 or 1.2 would take for something else."""

    def ignore_aliases(self, data: object) -> bool:
        return True


add_resolvers(_Dumper)


def config_values(config: Config) -> dict[str, Any]:
    """A configuration as values of JSON, with every default."""
    data = config.data.model_dump(mode="json", exclude_none=True)
    return {**config.model_dump(mode="json"), "data": data}


def dump_config(config: Config) -> str:
    """A configuration as YAML, with every default written out; reading it gives the same configuration."""
    return yaml.dump(config_values(config), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
