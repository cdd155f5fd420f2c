"""The sections of config.yaml, their values with defaults, and keys only for the person's file.

All sections are rows of `extension_points.SETTINGS`: see section_table.py.

Only the person's file may set keys that read beyond an agent's home, send data or spend money. A
repository or an agent can write the home's own file; it may set these keys only if the person
grants it: `homes: {~/agents/anna: [team]}`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...common.system.json import as_list, as_object
from .compiled import PROMPT_CHARACTERS, Kind, Section, key
from .rules import PatternRule

_MOST_TOKENS = 10**10
_MAIN, _ALL = "main", "all"


class StoreSettings(Section):
    SECTION = "store"
    ABOUT = "The store of all sessions, for `session-memory ingest`, `search` and `watch`."

    watch_path: Sequence[str] | None = key(
        Kind.PATHS,
        None,
        "Directories with transcripts; default: the directories of all runtimes.",
        if_wrong=[],
        sample="~/.claude/projects",
        alias="watchPath",
    )
    conversation_gap_minutes: int = key(
        Kind.WHOLE,
        60,
        "A silence longer than this ends a conversation.",
        1,
        7 * 24 * 60,
        alias="conversationGapMinutes",
    )
    poll_interval_ms: int = key(
        Kind.WHOLE,
        30_000,
        "How often `watch` checks all transcripts and ended conversations (in ms).",
        100,
        24 * 3600 * 1000,
        alias="pollIntervalMs",
    )
    min_conversation_messages: int = key(
        Kind.WHOLE,
        5,
        "A conversation with fewer messages is too short to be remembered.",
        1,
        1000,
        alias="minConversationMessages",
    )

    @property
    def gap(self) -> int:
        return self.conversation_gap_minutes * 60_000

    @property
    def poll_seconds(self) -> float:
        return self.poll_interval_ms / 1000


class Chunking(Section):
    SECTION = "memories.chunking"

    strategy: str = key(
        Kind.ANY_OF,
        "exchange",
        "Where to split a conversation that a model reads in parts.",
        choices=("exchange",),
    )
    max_chunk_tokens: int = key(Kind.WHOLE, 1000, "The most tokens in one part.", 100, 1_000_000)


class Filtering(Section):
    SECTION = "memories.filtering"
    ABOUT = "The parts of a conversation that a model reads."

    keep_user_messages: bool = key(Kind.FLAG, True, "The users' messages.", if_wrong=False)
    keep_agent_responses: bool = key(Kind.FLAG, True, "The agents' messages.", if_wrong=False)
    keep_reasoning: bool = key(
        Kind.FLAG,
        False,
        "The agents' reasoning, as far as transcripts have it.",
    )
    keep_tool_structure: bool = key(
        Kind.FLAG,
        True,
        "A line for each tool use: its name, its parameters, its outcome.",
        if_wrong=False,
    )
    parameters: str = key(
        Kind.ANY_OF,
        _MAIN,
        "A tool use's parameters: the main one, or all except file contents.",
        choices=(_MAIN, _ALL),
    )
    max_parameter_chars: int = key(
        Kind.WHOLE, 200, "The most characters kept of a parameter.", 20, 10_000
    )
    max_output_summary_chars: int = key(
        Kind.WHOLE, 200, "The most characters kept of an outcome.", 20, 10_000
    )
    omit_tool_outputs: bool = key(Kind.ANY_OF, True, "", choices=(True,))  # the store keeps neither
    omit_file_contents: bool = key(Kind.ANY_OF, True, "", choices=(True,))

    @property
    def keeps_all_parameters(self) -> bool:
        return self.parameters == _ALL


class SummarySettings(Section):
    SECTION = "memories.summary"

    model: str = key(
        Kind.MODEL, "haiku", "The model of the strategy `summary`, by its name in Claude Code."
    )
    max_input_tokens: int = key(
        Kind.WHOLE, 30_000, "Longer conversations are read in parts.", 2000, 500_000
    )
    max_output_tokens: int = key(Kind.WHOLE, 6000, "The most tokens in an answer.", 1000, 64_000)
    timeout_seconds: int = key(Kind.WHOLE, 300, "How many seconds an answer may take.", 1, 1500)


class MemorySettings(Section):
    """The section `memories`. `section` is the section as set; strategies find their keys there."""

    SECTION = "memories"
    ABOUT = "How finished conversations become memories: `session-memory process`."

    strategies: Sequence[str] = key(
        Kind.STRATEGIES,
        ["extractive"],
        "Strategies: extractive, summary, graphiti, or strategies from other packages.",
    )
    tokens_per_day: int = key(
        Kind.WHOLE,
        500_000,
        "The most tokens that all models together may read and write in a day (UTC).",
        0,
        _MOST_TOKENS,
        if_wrong=0,
    )
    tokens_per_conversation: int = key(
        Kind.WHOLE,
        200_000,
        "The most tokens that all models may read and write for one conversation.",
        0,
        _MOST_TOKENS,
        if_wrong=0,
    )
    attempts: int = key(
        Kind.WHOLE,
        5,
        "How many times to try a conversation that fails, with growing pauses.",
        1,
        100,
    )
    prompt_characters: int = key(
        Kind.WHOLE,
        PROMPT_CHARACTERS,
        "How many of the `max_characters` memories may use; 0: no memories are added.",
        0,
        500,
    )
    prices: Mapping[str, Mapping[str, float]] = key(
        Kind.PRICES,
        {},
        "Dollars per million tokens, instead of the built-in prices.",
        sample="{my-model: {input: 1, output: 5, cached: 0.1}}",
    )
    chunking = Chunking()
    filtering = Filtering()
    section: Mapping[str, object] = {}


# Under these ids a strategy finds its own keys; it stops if one is wrong.
BUILT_IN_STRATEGIES = ("extractive", "summary", "graphiti")


def store_settings(section: Mapping[str, object], user_home: str) -> StoreSettings:
    """Return the checked section `store` with absolute paths; `~` in them stands for
    `user_home`."""
    paths = section.get("watch_path")
    if paths is None:
        return StoreSettings(**section)
    watched = [expanded_path(path, user_home) for path in _texts(paths)]
    return StoreSettings(**{**section, "watch_path": watched})


def memory_settings(section: Mapping[str, object]) -> MemorySettings:
    """Return the settings of the section `memories`."""
    values = {
        setting.last_name: section[setting.last_name]
        for setting in MemorySettings.table()
        if setting.last_name in section
    }
    chunking, filtering = (
        Chunking(**as_object(section.get("chunking"))),
        Filtering(**as_object(section.get("filtering"))),
    )
    return MemorySettings(**values, chunking=chunking, filtering=filtering, section=section)


def _texts(value: object) -> list[str]:
    """Return a value that is a text or a list of texts as a list."""
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


def expanded_path(path: str, user_home: str) -> str:
    """Return an absolute path; `~` in it stands for `user_home`."""
    if path == "~" or path.startswith("~/"):
        path = user_home + path[1:]
    return os.path.normpath(path)


# possible grants, besides the ids of strategies
WATCH_PATH, SHARED, KEEP = "watch_path", "team", "keep"
FREE_STRATEGY = "extractive"  # the strategy that uses no model


def granted(values: Mapping[str, object], root: str, user_dir: str) -> tuple[str, ...]:
    """Return what the person's settings grant the home at `root`."""
    listed = values.get("homes")
    agents = listed if isinstance(listed, dict) else dict.fromkeys(as_list(listed))
    real = os.path.realpath(root)
    for home, grants in agents.items():
        if os.path.realpath(expanded_path(home, user_dir)) == real:
            return tuple(as_list(grants))
    return ()


def confine(
    values: dict[str, object],
    rules: Iterable[PatternRule],
    root: str,
    grants: Collection[str],
    user_dir: str,
) -> Iterator[tuple[str, str]]:
    """Remove keys and rules that a home may not set; yield each key with its missing grant."""
    if WATCH_PATH not in grants and _confine_paths(as_object(values.get("store")), root, user_dir):
        yield "store.watch_path", WATCH_PATH
    if SHARED not in grants:
        if as_object(values.pop("team", None)).get("url"):
            yield "team.url", SHARED
        for rule in [rule for _, rule in rules if rule.get("share") == SHARED]:
            del rule["share"]
    for name in ("keep", "disk_bytes"):
        if KEEP not in grants and values.pop(name, None) is not None:
            yield name, KEEP
    yield from _confine_strategies(as_object(values.get("memories")), grants)
    for name in ("homes", "runtimes"):
        if values.pop(name, None):
            yield name, ""


def _confine_paths(store: dict[str, object], root: str, user_dir: str) -> bool:
    """Remove watched paths outside the home; return True if there were any."""
    paths = _texts(store.get(WATCH_PATH))
    inside = [path for path in paths if is_inside(expanded_path(path, user_dir), root)]
    if inside != paths:
        store[WATCH_PATH] = inside or None
    return inside != paths


def _confine_strategies(
    memories: dict[str, object], grants: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Remove strategies without a grant, and their settings; yield each key and strategy."""
    chosen = as_list(memories.get("strategies"))
    for strategy in dict.fromkeys([*chosen, *BUILT_IN_STRATEGIES]):
        if strategy in (FREE_STRATEGY, *grants):
            continue
        has_settings = memories.pop(strategy, None)
        if strategy in chosen:
            kept = [name for name in as_list(memories["strategies"]) if name != strategy]
            memories["strategies"] = kept or [FREE_STRATEGY]
            yield "memories.strategies", strategy
        elif has_settings:
            yield f"memories.{strategy}", strategy


def is_inside(path: str, root: str) -> bool:
    """Return True if `path` leads to `root` or below it, whatever symlinks are on the way."""
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    return real == real_root or real.startswith(real_root + os.sep)
