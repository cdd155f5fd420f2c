"""The section `memories: graphiti` of config.yaml: the graph, the model, the embedder, and where their keys are."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

from ....settings.sections import strategy_settings
from ...strategy import UnavailableError
from .database import checked_url

NO_KEY = "none"  # what a server of one's own, which asks for no key, is told


class GraphSettings(NamedTuple):
    """The section. `url` is '' for an embedded graph beside the store; the embedder lies where the model does unless it
    has a `base_url` or key of its own; `dimensions` are the numbers that it gives for a text."""

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
        """The key of the model's API. Raises UnavailableError where OpenAI itself is to be asked and there is none."""
        return _key(environ, self.key_env, self.base_url)

    def embedder_key(self, environ: Mapping[str, str]) -> str:
        """The same for the embedder's."""
        return _key(environ, self.embedder_key_env or self.key_env, self.embedder_base_url or self.base_url)


def settings_of(values: Any) -> GraphSettings:
    """The settings in a section. Raises ConfigError for whatever is not as documented."""
    settings = GraphSettings(**strategy_settings("graphiti", values))
    if settings.url:
        checked_url(settings.url)
    return settings


def silence_telemetry(environ: MutableMapping[str, str]) -> None:
    """Turns graphiti's telemetry off, which is on unless the environment says otherwise when it is imported."""
    environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"


def _key(environ: Mapping[str, str], variable: str, base_url: str) -> str:
    found = environ.get(variable, "")
    if not found and not base_url:
        raise UnavailableError(f"graphiti has no key: {variable} is not set", "set it, or name a base_url of your own")
    return found or NO_KEY
