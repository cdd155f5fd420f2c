"""The section `memories: graphiti` of config.yaml: the graph, the model, the embedder, and their keys."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

from ....settings.check import strategy_settings
from ...strategy import UnavailableError
from .database import checked_url

NO_KEY = "none"  # sent to a self-hosted server, which requires no key


class GraphSettings(NamedTuple):
    """The section. `url` is '' for an embedded graph beside the store. The embedder uses the model's API unless it has
    its own `base_url` or key; `dimensions` is the length of its vectors."""

    url: str
    password_env: str
    model: str
    small_model: str
    base_url: str
    key_env: str
    embedder: str
    embedder_base_url: str
    embedder_key_env: str
    dimensions: int
    max_output_tokens: int
    timeout_seconds: int

    def key(self, environ: Mapping[str, str]) -> str:
        """Return the key of the model's API. Raises UnavailableError if OpenAI itself is used and there is none."""
        return _key(environ, self.key_env, self.base_url)

    def embedder_key(self, environ: Mapping[str, str]) -> str:
        """Return the key of the embedder's API. Raises as `key` does."""
        return _key(environ, self.embedder_key_env or self.key_env, self.embedder_base_url or self.base_url)


def settings_of(values: Any) -> GraphSettings:
    """Parse the section. Raises ConfigError for any undocumented value."""
    settings = GraphSettings(**strategy_settings("graphiti", values))
    if settings.url:
        checked_url(settings.url)
    return settings


def silence_telemetry(environ: MutableMapping[str, str]) -> None:
    """Turn off graphiti's telemetry, which is on unless the environment says otherwise at import."""
    environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"


def _key(environ: Mapping[str, str], variable: str, base_url: str) -> str:
    found = environ.get(variable, "")
    if not found and not base_url:
        raise UnavailableError(f"graphiti has no key: {variable} is not set", "set it, or name a base_url of your own")
    return found or NO_KEY
