"""An HTTP client for OpenAI-style APIs that refuses requests beyond the budget."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openai import DefaultAsyncHttpxClient

from ...budget import estimated_tokens
from ...strategy import BudgetError, Usage

if TYPE_CHECKING:
    from ...strategy import ModelBudget


class MeteredClient(DefaultAsyncHttpxClient):
    """The HTTP client of an AsyncOpenAI. `refusal` is the budget's error for a refused request, None if there was none;
    AsyncOpenAI hides it behind its own error."""

    def __init__(self, budget: ModelBudget, timeout_seconds: float) -> None:
        super().__init__(timeout=timeout_seconds)
        self.refusal: BudgetError | None = None
        self._budget = budget

    async def send(self, request: Any, **options: Any) -> Any:
        """Send a request if it is within the budget."""
        asked = _json(request.content)
        model = str(asked.get("model", ""))
        try:
            with self._budget.call(_estimate(request.content, asked, model)) as call:
                response = await super().send(request, **options)
                await response.aread()
                call.report(_reported(response.status_code, response.content, model))
                return response
        except BudgetError as error:
            self.refusal = error
            raise


def _estimate(content: bytes, asked: dict[str, Any], model: str) -> Usage:
    """Return the most that a request costs: everything sent, and the longest answer."""
    most = asked.get("max_tokens") or asked.get("max_completion_tokens") or 0
    return Usage(
        estimated_tokens(content.decode("utf-8", "replace")), most if isinstance(most, int) else 0, model=model
    )


def _reported(status: int, content: bytes, model: str) -> Usage:
    """Return the usage that the API reports for an answer; zero if it refused."""
    usage = _json(content).get("usage") if status < 400 else None
    if not isinstance(usage, dict):
        return Usage(model=model)
    read, written = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(read - cached, written, cached, model)


def _json(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
