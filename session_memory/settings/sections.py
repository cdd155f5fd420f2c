"""The sections of config.yaml as values with every default filled in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from . import keys

if TYPE_CHECKING:
    from collections.abc import Mapping


_DEFAULTS = {key.name: key.default for key in keys.KEYS}


class StoreSettings(NamedTuple):
    """The section `memory`. `watch_paths` are directories of transcripts, None where the runtimes' own are meant. A
    silence of more than `gap_minutes` ends a conversation; one of fewer than `least_messages` messages is not worth
    remembering."""

    watch_paths: tuple[str, ...] | None = None
    gap_minutes: int = _DEFAULTS["memory.conversationGapMinutes"]
    poll_seconds: float = _DEFAULTS["memory.pollIntervalMs"] / 1000
    least_messages: int = _DEFAULTS["memory.minConversationMessages"]

    @property
    def gap(self) -> int:
        """The gap in milliseconds."""
        return self.gap_minutes * 60_000


class Filtering(NamedTuple):
    """What of a conversation a model gets to read. The keys `omit_tool_outputs` and `omit_file_contents` are not here:
    the store holds neither."""

    keep_user_messages: bool = _DEFAULTS["memories.filtering.keep_user_messages"]
    keep_agent_responses: bool = _DEFAULTS["memories.filtering.keep_agent_responses"]
    keep_tool_structure: bool = _DEFAULTS["memories.filtering.keep_tool_structure"]
    max_output_summary_chars: int = _DEFAULTS["memories.filtering.max_output_summary_chars"]
    max_parameter_chars: int = _DEFAULTS["memories.filtering.max_parameter_chars"]


class MemorySettings(NamedTuple):
    """The section `memories`; `values` is the section as it is set, which strategies find their own keys in."""

    strategies: tuple[str, ...] = tuple(_DEFAULTS["memories.strategies"])
    tokens_per_day: int = _DEFAULTS["memories.tokens_per_day"]
    tokens_per_conversation: int = _DEFAULTS["memories.tokens_per_conversation"]
    attempts: int = _DEFAULTS["memories.attempts"]
    watch: bool = _DEFAULTS["memories.watch"]
    max_chunk_tokens: int = _DEFAULTS["memories.chunking.max_chunk_tokens"]
    filtering: Filtering = Filtering()
    prices: Mapping[str, Mapping[str, float]] = {}
    values: Mapping[str, Any] = {}


class TeamSettings(NamedTuple):
    """The section `team`: the address of its database ('' for none), what this machine is called, who may read what no
    rule is for, and the names of projects by their directories."""

    url: str = ""
    machine: str = ""
    share: str = _DEFAULTS["team.share"]
    projects: Mapping[str, str] = {}


class HostSettings(NamedTuple):
    """The section `host`."""

    model: str | None = None
    groups_at_once: int = _DEFAULTS["host.groups_at_once"]
    idle_seconds: float = _DEFAULTS["host.idle_seconds"]
    allowed_tools: tuple[str, ...] = ()
    attempts: int = _DEFAULTS["host.attempts"]


def store_settings(section: Mapping[str, Any], user_home: str) -> StoreSettings:
    """The settings in the section `memory` as it was checked; `~` in its paths stands for `user_home`."""
    values = keys.filled("memory", section)
    paths = values["watchPath"]
    return StoreSettings(
        None if paths is None else tuple([_expanded(one, user_home) for one in _as_list(paths)]),
        values["conversationGapMinutes"],
        values["pollIntervalMs"] / 1000,
        values["minConversationMessages"],
    )


def memory_settings(section: Mapping[str, Any]) -> MemorySettings:
    """The settings in the section `memories` as it was checked."""
    values = keys.filled("memories", section)
    filtering = keys.filled("memories.filtering", section.get("filtering", {}))
    return MemorySettings(
        tuple(values["strategies"]),
        values["tokens_per_day"],
        values["tokens_per_conversation"],
        values["attempts"],
        values["watch"],
        keys.filled("memories.chunking", section.get("chunking", {}))["max_chunk_tokens"],
        Filtering(**{name: filtering[name] for name in Filtering._fields}),
        values["prices"],
        section,
    )


def strategy_settings(name: str, values: Any) -> dict[str, Any]:
    """The section of the built-in strategy `name`, with its defaults. Raises ConfigError for what is wrong in it, since
    a model costs money and gets to read what was said."""
    from .check import require

    section = f"memories.{name}"
    return require([key for key in keys.KEYS if key.section == section], values, f"memories: {name}")


def team_settings(section: Mapping[str, Any], user_home: str) -> TeamSettings:
    """The settings in the section `team` as it was checked; `~` in its paths stands for `user_home`."""
    values = keys.filled("team", section)
    projects = {_expanded(path, user_home): name for path, name in values["projects"].items()}
    return TeamSettings(**{**values, "projects": projects})


def host_settings(section: Mapping[str, Any]) -> HostSettings:
    """The settings in the section `host` as it was checked."""
    values = keys.filled("host", section)
    return HostSettings(**{**values, "allowed_tools": tuple(values["allowed_tools"])})


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _expanded(path: str, user_home: str) -> str:
    if path == "~" or path.startswith("~/"):
        path = user_home + path[1:]
    return os.path.normpath(path)
