"""graphiti's clients for OpenAI-style APIs with our settings.

They are the model without retries, the embedder, and the HTTP client, which refuses requests beyond
the budget.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.driver import GraphDriver
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from ...common.system.json import as_object
from ...common.text.tokens import estimated_tokens
from ...memory.strategy import BudgetError, ModelBudget, Usage
from .settings import GraphitiSettings


class _Model(OpenAIGenericClient):
    """The model without graphiti's retries, which take up to eight minutes; our queue retries
    later."""

    async def _generate_response_with_retry(  # type: ignore[override,unused-ignore] # that one is decorated
        self, *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        if kwargs.get("model") is None:
            kwargs.pop("model", None)
        return await self._generate_response(*args, **kwargs)


class _NoReranker(CrossEncoderClient):
    """A reranker that does nothing, because our searches use none.

    Otherwise graphiti would create its own, which needs a key."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        return [(passage, 1.0) for passage in passages]


def client_of(
    settings: GraphitiSettings,
    driver: GraphDriver,
    http: MeteredClient,
    key: str,
    embedder_key: str,
) -> Graphiti:
    """Return graphiti's client for a graph, with the API keys of the model and the embedder."""
    address = settings.base_url or None
    # Our queue retries later; a retrying client would hold graph and budget while it waits.
    asking = AsyncOpenAI(api_key=key, base_url=address, http_client=http, max_retries=0)
    embedding = AsyncOpenAI(
        api_key=embedder_key,
        base_url=settings.embedder_base_url or address,
        http_client=http,
        max_retries=0,
    )
    config = LLMConfig(
        model=settings.model,
        small_model=settings.small_model or settings.model,
        temperature=0,
        max_tokens=settings.max_output_tokens,
    )
    embedder = OpenAIEmbedderConfig(
        embedding_model=settings.embedder, embedding_dim=settings.dimensions
    )
    return Graphiti(
        graph_driver=driver,
        llm_client=_Model(config, client=asking, max_tokens=settings.max_output_tokens),
        embedder=OpenAIEmbedder(embedder, client=embedding),
        cross_encoder=_NoReranker(),
    )


class MeteredClient(DefaultAsyncHttpxClient):
    """The HTTP client of an AsyncOpenAI.

    `refusal` is the budget's error for a refused request, or None. AsyncOpenAI hides it behind its
    own error."""

    def __init__(self, budget: ModelBudget, timeout_seconds: float) -> None:
        super().__init__(timeout=timeout_seconds)
        self.refusal: BudgetError | None = None
        self._budget = budget

    async def send(self, request: Any, **options: Any) -> Any:
        """Send a request if it is within the budget."""
        body = _json(request.content)
        model = str(body.get("model", ""))
        try:
            with self._budget.call(_estimate(request.content, body, model)) as call:
                response = await super().send(request, **options)
                await response.aread()
                call.report(_reported(response.status_code, response.content, model))
                return response
        except BudgetError as error:
            self.refusal = error
            raise


def _estimate(content: bytes, body: dict[str, Any], model: str) -> Usage:
    """Return the highest cost of a request: everything sent, and the longest answer."""
    most = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    sent = estimated_tokens(content.decode("utf-8", "replace"))
    return Usage(sent, most if isinstance(most, int) else 0, model=model)


def _reported(status: int, content: bytes, model: str) -> Usage:
    """Return the usage that the API reports for an answer; zero if it refused."""
    usage = as_object(_json(content).get("usage")) if status < 400 else {}
    read, written = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    cached = as_object(usage.get("prompt_tokens_details")).get("cached_tokens") or 0
    return Usage(read - cached, written, cached, model)


def _json(content: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        return as_object(json.loads(content))
    return {}
