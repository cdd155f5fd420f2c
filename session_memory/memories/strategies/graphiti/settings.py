"""The section `memories: graphiti` of config.yaml: the graph, the model, the embedder, and where their keys are."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

from ....errors import ConfigError
from ...strategy import UnavailableError
from .database import checked_url

NO_KEY = "none"  # what a server of one's own, which asks for no key, is told
_NUMBERS = {"dimensions": (8, 8192), "max_output_tokens": (256, 64_000), "timeout_seconds": (1, 1500)}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class GraphSettings(NamedTuple):
    """The section, or its defaults. `url` is '' for an embedded graph beside the store; the embedder lies where the
    model does unless it has a `base_url` or key of its own; `dimensions` are the numbers that it gives for a text."""

    url: str = ""
    password_env: str = "NEO4J_PASSWORD"
    model: str = "gpt-4.1-mini"
    small_model: str = ""
    base_url: str = ""
    key_env: str = "OPENAI_API_KEY"
    embedder: str = "text-embedding-3-small"
    embedder_base_url: str = ""
    embedder_key_env: str = ""
    dimensions: int = 1024
    max_output_tokens: int = 4096
    timeout_seconds: int = 300

    def key(self, environ: Mapping[str, str]) -> str:
        """The key of the model's API. Raises UnavailableError where OpenAI itself is to be asked and there is none."""
        return _key(environ, self.key_env, self.base_url)

    def embedder_key(self, environ: Mapping[str, str]) -> str:
        """The same for the embedder's."""
        return _key(environ, self.embedder_key_env or self.key_env, self.embedder_base_url or self.base_url)


def settings_of(values: Any) -> GraphSettings:
    """The settings in a section. Raises ConfigError for whatever is not as documented."""
    if not isinstance(values, dict):
        raise ConfigError("memories: graphiti should be keys and values", _keys())
    for key, value in values.items():
        if key not in GraphSettings._fields:
            raise ConfigError(f"memories: graphiti: unknown key {key!r}", _keys())
        if key in _NUMBERS:
            low, high = _NUMBERS[key]
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                hint = f"it is a whole number from {low} to {high}"
                raise ConfigError(f"memories: graphiti: {key} is {value!r}", hint)
        elif not isinstance(value, str):
            raise ConfigError(f"memories: graphiti: {key} is {value!r}", "it is a text")
        if key.endswith("_env") and value and not _VARIABLE.fullmatch(value):
            hint = "it is the name of the environment variable that holds the key, never the key itself"
            raise ConfigError(f"memories: graphiti: {key} is no name of a variable", hint)
        if key.endswith("base_url") and value and not value.startswith(("http://", "https://")):
            raise ConfigError(f"memories: graphiti: {key} is {value!r}", "it begins with https:// or http://")
    if values.get("url"):
        checked_url(values["url"])
    return GraphSettings(**values)


def silence_telemetry(environ: MutableMapping[str, str]) -> None:
    """Turns graphiti's telemetry off, which is on unless the environment says otherwise when it is imported."""
    environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"


def _key(environ: Mapping[str, str], variable: str, base_url: str) -> str:
    found = environ.get(variable, "")
    if not found and not base_url:
        raise UnavailableError(f"graphiti has no key: {variable} is not set", "set it, or name a base_url of your own")
    return found or NO_KEY


def _keys() -> str:
    return f"the keys are {', '.join(GraphSettings._fields)}"
