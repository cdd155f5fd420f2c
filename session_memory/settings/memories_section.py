"""The section `memories` of config.yaml: what may stand in it, and the check that only that does. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENTED = """\
# How finished conversations become memories: `session-memory process`.
# memories:
#   strategies: [extractive]           # extractive, summary, graphiti, or one that a package brings
#   tokens_per_day: 500000             # the most that models may read and write in a day (UTC), all together
#   tokens_per_conversation: 200000    # and for one conversation
#   attempts: 5                        # so often is tried what failed, ever later
#   prompt_characters: 0               # so much is added to a prompt of memories that it is about (0: nothing)
#   watch: false                       # whether `session-memory watch` does the same as soon as they are finished
#   chunking: {strategy: exchange, max_chunk_tokens: 1000}
#   filtering:                         # what a model gets to read of a conversation
#     keep_user_messages: true
#     keep_agent_responses: true
#     keep_tool_structure: true        # a line for each tool use: its name, its main parameter, how it ended
#     max_parameter_chars: 200
#     max_output_summary_chars: 200
#   summary: {model: haiku, max_input_tokens: 30000, max_output_tokens: 6000, timeout_seconds: 300}
#   graphiti: {url: "", model: gpt-4.1-mini, base_url: "", key_env: OPENAI_API_KEY} # see docs/graph.md
#   prices: {}                         # dollars for a million tokens: {my-model: {input: 1, output: 5, cached: 0.1}}
"""

BUILT_IN = ("extractive", "summary", "graphiti")
MOST_TOKENS = 10**10

_PLAIN_KEYS = ("tokens_per_day", "tokens_per_conversation", "attempts", "watch", "prompt_characters")
_OWN_KEYS = ("strategies", *_PLAIN_KEYS, "chunking", "filtering", "prices")
_FILTERING_FLAGS = ("keep_user_messages", "keep_agent_responses", "keep_tool_structure")
_ALWAYS_TRUE = ("omit_tool_outputs", "omit_file_contents")
_FILTERING_NUMBERS = {"max_output_summary_chars": (20, 10_000), "max_parameter_chars": (20, 10_000)}
_PRICE_KEYS = ("input", "output", "cached")


def check(values: Any, path: str) -> None:
    """Raises ConfigError for whatever in the section is not as documented. What stands under the id of a strategy is
    for that strategy to check."""
    path = f"{path}: memories"
    _check_mapping(values, path)
    strategies = values.get("strategies", ["extractive"])
    if not isinstance(strategies, list) or not strategies or not all(isinstance(one, str) for one in strategies):
        raise ConfigError(f"{path}: strategies is {strategies!r}", "it is a list such as [extractive]")
    if len(set(strategies)) < len(strategies):
        raise ConfigError(f"{path}: strategies names one twice")
    for key, value in values.items():
        if key in _OWN_KEYS:
            continue
        if key not in BUILT_IN and key not in strategies:
            hint = f"the keys are {', '.join(_OWN_KEYS)}, and the ids of strategies"
            raise ConfigError(f"{path}: unknown key {key!r}", hint)
        _check_mapping(value, f"{path}: {key}")
    for key in ("tokens_per_day", "tokens_per_conversation"):
        _check_whole(values, key, 0, MOST_TOKENS, path)
    _check_whole(values, "attempts", 1, 100, path)
    _check_whole(values, "prompt_characters", 0, 5000, path)
    if not isinstance(values.get("watch", False), bool):
        raise ConfigError(f"{path}: watch is {values['watch']!r}", "it is true or false")
    _check_chunking(values.get("chunking", {}), f"{path}: chunking")
    _check_filtering(values.get("filtering", {}), f"{path}: filtering")
    _check_prices(values.get("prices", {}), f"{path}: prices")


def _check_chunking(values: Any, path: str) -> None:
    _check_keys(values, ("strategy", "max_chunk_tokens"), path)
    if values.get("strategy", "exchange") != "exchange":
        raise ConfigError(f"{path}: strategy is {values['strategy']!r}", "it is exchange")
    _check_whole(values, "max_chunk_tokens", 100, 1_000_000, path)


def _check_filtering(values: Any, path: str) -> None:
    _check_keys(values, (*_FILTERING_FLAGS, *_ALWAYS_TRUE, *_FILTERING_NUMBERS), path)
    for key in _FILTERING_FLAGS:
        if not isinstance(values.get(key, True), bool):
            raise ConfigError(f"{path}: {key} is {values[key]!r}", "it is true or false")
    for key in _ALWAYS_TRUE:
        if values.get(key, True) is not True:
            raise ConfigError(f"{path}: {key} is {values[key]!r}", "it is true: the store keeps neither")
    for key, (low, high) in _FILTERING_NUMBERS.items():
        _check_whole(values, key, low, high, path)


def _check_prices(values: Any, path: str) -> None:
    _check_mapping(values, path)
    for model, prices in values.items():
        _check_keys(prices, _PRICE_KEYS, f"{path}: {model}")
        for key, value in prices.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise ConfigError(f"{path}: {model}: {key} is {value!r}", "it is a number of dollars")


def _check_keys(values: Any, keys: tuple[str, ...], path: str) -> None:
    _check_mapping(values, path)
    for key in values:
        if key not in keys:
            raise ConfigError(f"{path}: unknown key {key!r}", f"the keys are {', '.join(keys)}")


def _check_mapping(values: Any, path: str) -> None:
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{path} should be keys and values")


def _check_whole(values: Mapping[str, Any], key: str, low: int, high: int, path: str) -> None:
    value = values.get(key, low)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{path}: {key} is {value!r}", f"it is a whole number from {low} to {high}")
