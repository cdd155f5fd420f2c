"""The strategy that fills a Graphiti knowledge graph."""
