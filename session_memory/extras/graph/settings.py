"""The section `memories.graphiti` of config.yaml."""

from __future__ import annotations

from ...sessions.settings.compiled import Kind, Section, key


class GraphitiSettings(Section):
    SECTION = "memories.graphiti"

    url: str = key(
        Kind.TEXT, "", "The graph database (see graph.md); if empty, a file beside the store."
    )
    password_env: str = key(
        Kind.VARIABLE, "NEO4J_PASSWORD", "The environment variable with the database's password."
    )
    model: str = key(Kind.MODEL, "gpt-4.1-mini", "The model of the strategy `graphiti`.")
    small_model: str = key(
        Kind.TEXT, "", "A smaller model for simple questions; if empty, the same model."
    )
    base_url: str = key(Kind.URL, "", "The address of the model's API; if empty, OpenAI's.")
    key_env: str = key(
        Kind.VARIABLE, "OPENAI_API_KEY", "The environment variable with the API key."
    )
    embedder: str = key(
        Kind.MODEL, "text-embedding-3-small", "The embedding model, which compares texts."
    )
    embedder_base_url: str = key(
        Kind.URL, "", "The address of the embedding API; if empty, the model's API."
    )
    embedder_key_env: str = key(
        Kind.VARIABLE,
        "",
        "The variable with the embedding key; if empty, the model's.",
    )
    dimensions: int = key(Kind.WHOLE, 1024, "The length of an embedding.", 8, 8192)
    max_output_tokens: int = key(Kind.WHOLE, 4096, "The most tokens in an answer.", 256, 64_000)
    timeout_seconds: int = key(Kind.WHOLE, 300, "How many seconds an answer may take.", 1, 1500)
