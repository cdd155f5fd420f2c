"""Prices of models, and the cost of tokens.

Our prices are in prices.yaml. The last update overrides them, and the user's own prices override
both.
"""

import json
import os
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

from ..common.errors import SessionMemoryError
from ..common.system.files import read_whole, write_atomically
from ..sessions.settings.homes import person_home
from .store.values import Usage

Prices = Mapping[str, Mapping[str, float]]

SOURCE = (
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
)
UPDATED_FILE = "prices.json"
MOST_BYTES = 64 * 1024 * 1024
LEAST_PRICES = 10  # a file with fewer is something else, or damaged
TIMEOUT_SECONDS = 30
_FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
}
_MAKERS = "amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|openai|qwen|zai"
_PROVIDER = re.compile(rf"^(?:(?:us|us-gov|eu|apac|jp|au|ca|global)\.)?(?:{_MAKERS})\.")
_DATE = r"(?:[-@]\d{8}|-\d{4}-\d\d-\d\d|-latest|@default)?"
_VERSION = re.compile(_DATE + r"(?:-v\d+)?(?::\d+|:thinking|:beta)?(?:\[1m\])?$")


class PricesError(SessionMemoryError):
    """Prices cannot be updated; the old ones stay."""


def all_prices(user_prices: Prices) -> Prices:
    """Return the prices in dollars per million tokens.

    The user's own prices take precedence, then the last update's, then those in prices.yaml."""
    import yaml  # not installed where only --help is asked for

    table = yaml.safe_load(
        read_whole(os.path.join(os.path.dirname(os.path.abspath(__file__)), "prices.yaml"))
    )
    return {**table, **_updated(*_updated_file()), **user_prices}


def cost(usage: Usage, prices: Prices) -> float | None:
    """Return the cost of `usage` in dollars; None for a model without a price, 0 without tokens."""
    if not usage.tokens:
        return 0.0
    price = prices.get(usage.model) or prices.get(_plain_name(usage.model))
    if price is None:
        return None
    read = usage.input_tokens * price.get("input", 0.0) + usage.cached_tokens * price.get(
        "cached", 0.0
    )
    return (read + usage.output_tokens * price.get("output", 0.0)) / 1e6


@lru_cache(maxsize=256)
def _plain_name(model: str) -> str:
    """Return a model's name without its provider, region, date and version.

    Bedrock (`us.anthropic.<model>-v1:0`), Vertex (`<model>@20251001`) and OpenRouter
    (`anthropic/claude-opus-4.5`) add these. The result must match the table exactly: `gpt-5.4`
    differs from `gpt-5`."""
    name = _VERSION.sub("", _PROVIDER.sub("", model.rpartition("/")[2]), count=1)
    return name.replace(".", "-") if name.startswith("claude-") else name


def update_prices(address: str = SOURCE) -> int:
    """Replace the updated prices with a file's in LiteLLM's format; return their number.

    Raises PricesError if the file cannot be fetched or has another format; the old prices then
    stay."""
    if not address.startswith(("https://", "http://")):
        raise PricesError(f"{address}: not an address", "give one that begins with https://")
    from http.client import HTTPException  # with urlopen 10 ms
    from urllib.request import urlopen

    try:
        with urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
            content = answer.read(MOST_BYTES + 1)
    except (OSError, HTTPException, ValueError) as error:
        raise PricesError(
            f"{address}: {error}", "the prices stay as they were; try again later"
        ) from error
    prices = _parsed_prices(content)
    if len(prices) < LEAST_PRICES:
        hint = "the prices stay as they were; give the address of a file in LiteLLM's format"
        raise PricesError(
            f"{address}: not a price file ({len(prices)} found, {LEAST_PRICES} expected)", hint
        )
    path, _ = _updated_file()
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    write_atomically(
        path, json.dumps({"from": address, "at": round(time.time()), "prices": prices}).encode()
    )
    return len(prices)


def _parsed_prices(content: bytes) -> dict[str, dict[str, float]]:
    """Convert the prices of a file in LiteLLM's format (dollars per token) to ours (per million).

    Entries without prices are left out; the result is empty for another format. A model also gets
    its name without a date, unless another model has that name."""
    if len(content) > MOST_BYTES:
        return {}
    try:
        table = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    prices = {}
    for name, entry in table.items() if isinstance(table, dict) else ():
        price = (
            {key: _amount(entry.get(field)) for key, field in _FIELDS.items()}
            if isinstance(entry, dict)
            else {}
        )
        if (
            name != "sample_spec"
            and price.get("input") is not None
            and price.get("output") is not None
        ):
            cached = price["input"] if price["cached"] is None else price["cached"]
            prices[name] = {"input": price["input"], "output": price["output"], "cached": cached}
    for name in [name for name in prices if "/" not in name]:
        prices.setdefault(_VERSION.sub("", name, count=1), prices[name])
    return prices  # type: ignore[return-value]


def _amount(value: Any) -> float | None:
    """Return the dollars per million tokens; None if the value is not a price."""
    is_number = (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and isfinite(value)
        and 0 <= value < 1
    )
    return round(value * 1e6, 6) if is_number else None


def _updated_file() -> tuple[str, int]:
    """Return the path of the updated prices, and when they were written.

    The time is in nanoseconds, 0 if they do not exist."""
    path = os.path.join(person_home(os.environ).memory_dir, UPDATED_FILE)
    try:
        return path, os.stat(path).st_mtime_ns
    except OSError:
        return path, 0


@lru_cache(maxsize=1)
def _updated(path: str, written: int) -> Prices:
    """Return the prices of the last update; none without an update, or if its file is damaged."""
    try:
        prices = json.loads(read_whole(path))["prices"]
        return {
            str(name): {key: float(price[key]) for key in _FIELDS} for name, price in prices.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
