"""What the section `memories` of config.yaml means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..memories.filtering import Filtering

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN_KEYS = ("tokens_per_day", "tokens_per_conversation", "attempts", "watch")


class MemorySettings(NamedTuple):
    """The section, or its defaults; `values` is the section as it stands, which strategies find their own keys in."""

    strategies: tuple[str, ...] = ("extractive",)
    tokens_per_day: int = 500_000
    tokens_per_conversation: int = 200_000
    attempts: int = 5
    watch: bool = False
    max_chunk_tokens: int = 1000
    filtering: Filtering = Filtering()
    prices: Mapping[str, Mapping[str, float]] = {}
    values: Mapping[str, Any] = {}


def settings_of(values: Mapping[str, Any]) -> MemorySettings:
    """The settings in a section that was checked (memories_section.py)."""
    chosen = {key: values[key] for key in _PLAIN_KEYS if key in values}
    if "strategies" in values:
        chosen["strategies"] = tuple(values["strategies"])
    kept = {key: value for key, value in values.get("filtering", {}).items() if key in Filtering._fields}
    return MemorySettings(
        **chosen,
        max_chunk_tokens=values.get("chunking", {}).get("max_chunk_tokens", 1000),
        filtering=Filtering(**kept),
        prices=values.get("prices", {}),
        values=values,
    )
