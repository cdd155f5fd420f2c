"""host.yaml: what the owner of a host may choose, and the check that only that stands in it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ..errors import ConfigError

DOCUMENTED = """\
# session-memory: settings of this host. Every key is optional; these are the defaults.

# The model, as Claude Code knows it; without it the runtime's own choice.
# model: claude-sonnet-5

# How many groups talk to a model at the same time; the others wait for their turn.
# groups_at_once: 5

# How long an agent with nothing to do is kept ready for the next message.
# idle_seconds: 60

# What agents may use without being asked for, besides working on the files of their own group.
# An entry such as Bash, or Read without a path, reaches what belongs to other groups too.
# allowed_tools: [WebSearch]

# How often a message is tried again before the chat is told that there is no answer.
# attempts: 5
"""


class HostConfig(NamedTuple):
    """The settings of a host."""

    model: str | None = None
    groups_at_once: int = 5
    idle_seconds: float = 60
    allowed_tools: tuple[str, ...] = ()
    attempts: int = 5


_NUMBERS = {"groups_at_once": (1, 100), "idle_seconds": (0, 24 * 3600), "attempts": (1, 20)}


def read(path: str) -> HostConfig:
    """The settings that `path` holds; the defaults where there is no such file. Raises ConfigError."""
    if not os.path.lexists(path):
        return HostConfig()
    import yaml

    with open(path, encoding="utf-8", errors="replace") as file:
        try:
            values = yaml.safe_load(file)
        except yaml.YAMLError as error:
            raise ConfigError(f"{path}: {getattr(error, 'problem', None) or error}") from error
    if values is None:
        return HostConfig()
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: it should be keys and values, such as `groups_at_once: 5`")
    _check(values, path)
    if "allowed_tools" in values:
        values["allowed_tools"] = tuple(values["allowed_tools"])
    return HostConfig(**values)


def _check(values: dict[Any, Any], path: str) -> None:
    for key, value in values.items():
        if key not in HostConfig._fields:
            raise ConfigError(f"{path}: unknown key {key!r}", f"the keys are {', '.join(HostConfig._fields)}")
        if key in _NUMBERS:
            low, high = _NUMBERS[key]
            is_number = isinstance(value, int if key != "idle_seconds" else int | float) and not isinstance(value, bool)
            if not is_number or not low <= value <= high:
                raise ConfigError(f"{path}: {key} is {value!r}", f"it is a number from {low} to {high}")
        elif key == "model" and not (isinstance(value, str) and value):
            raise ConfigError(f"{path}: model is {value!r}", "it is the name of a model")
        elif key == "allowed_tools" and not (
            isinstance(value, list) and all(isinstance(one, str) and one for one in value)
        ):
            raise ConfigError(f"{path}: allowed_tools is {value!r}", "it is a list such as [WebSearch]")
