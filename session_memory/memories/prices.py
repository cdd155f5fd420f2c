"""What tokens cost in dollars, by prices.yaml and the user's own prices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..system.files import read_whole

if TYPE_CHECKING:
    from .strategy import Usage

    Prices = Mapping[str, Mapping[str, float]]


def all_prices(own: Prices) -> Prices:
    """The table, in which the user's own prices come before ours."""
    import yaml

    table = yaml.safe_load(read_whole(os.path.join(os.path.dirname(os.path.abspath(__file__)), "prices.yaml")))
    return {**table, **own}


def cost(usage: Usage, prices: Prices) -> float | None:
    """What `usage` costs in dollars; None for a model without a price. Without tokens nothing costs anything."""
    if not usage.tokens:
        return 0.0
    fitting = [name for name in prices if usage.model.startswith(name)]
    if not fitting:
        return None
    price = prices[max(fitting, key=len)]
    read = usage.input_tokens * price.get("input", 0.0) + usage.cached_tokens * price.get("cached", 0.0)
    return (read + usage.output_tokens * price.get("output", 0.0)) / 1e6
