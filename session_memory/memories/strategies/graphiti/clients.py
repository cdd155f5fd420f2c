"""graphiti's clients for OpenAI-style APIs with our settings: the model, without retries, the embedder, and the HTTP
client, which refuses requests beyond the budget."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from openai import DefaultAsyncHttpxClient

from ...budget import estimated_tokens
from ...strategy import BudgetError, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from ....settings.sections import GraphitiSettings
    from ...strategy import ModelBudget


class _Model(OpenAIGenericClient):
    """The model without graphiti's retries, which take up to eight minutes; our queue retries later."""

    async def _generate_response_with_retry(  # type: ignore[override] # that one is decorated
        self, *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        if kwargs.get("model") is None:
            kwargs.pop("model", None)
        return await self._generate_response(*args, **kwargs)


class _NoReranker(CrossEncoderClient):
    """A reranker that does nothing. Our searches use none, but graphiti would create its own, which needs a key."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        return [(passage, 1.0) for passage in passages]


def model(settings: GraphitiSettings, client: AsyncOpenAI) -> OpenAIGenericClient:
    """Return the model that reads episodes."""
    config = LLMConfig(
        model=settings.model, small_model=settings.small_model or settings.model, temperature=0,
        max_tokens=settings.max_output_tokens,
    )  # fmt: skip
    return _Model(config, client=client, max_tokens=settings.max_output_tokens)


def embedder(settings: GraphitiSettings, client: AsyncOpenAI) -> OpenAIEmbedder:
    """Return the client that embeds texts."""
    config = OpenAIEmbedderConfig(embedding_model=settings.embedder, embedding_dim=settings.dimensions)
    return OpenAIEmbedder(config, client=client)


def no_reranker() -> CrossEncoderClient:
    """Return the reranker that does nothing."""
    return _NoReranker()


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
