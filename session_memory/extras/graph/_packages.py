"""The packages that the knowledge graph needs."""


def missing_packages() -> list[str]:
    """Return graphiti's required packages that are not installed."""
    from importlib.util import find_spec

    return [name for name in ("graphiti_core", "httpx", "openai") if find_spec(name) is None]
