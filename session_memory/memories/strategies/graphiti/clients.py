"""graphiti's clients for OpenAI-style APIs with our settings: the model, without retries, and the embedder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from .settings import GraphSettings


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


def model(settings: GraphSettings, client: AsyncOpenAI) -> OpenAIGenericClient:
    """Return the model that reads episodes."""
    config = LLMConfig(
        model=settings.model, small_model=settings.small_model or settings.model, temperature=0,
        max_tokens=settings.max_output_tokens,
    )  # fmt: skip
    return _Model(config, client=client, max_tokens=settings.max_output_tokens)


def embedder(settings: GraphSettings, client: AsyncOpenAI) -> OpenAIEmbedder:
    """Return the client that embeds texts."""
    config = OpenAIEmbedderConfig(embedding_model=settings.embedder, embedding_dim=settings.dimensions)
    return OpenAIEmbedder(config, client=client)


def no_reranker() -> CrossEncoderClient:
    """Return the reranker that does nothing."""
    return _NoReranker()
