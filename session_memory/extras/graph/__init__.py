"""Memories in a Graphiti knowledge graph.

command: `session-memory graph`
engine: the graph, as the tools of an agent search it
graphs: the open graphs of a home's groups
settings: the section `memories.graphiti` of config.yaml
strategy: the strategy that fills the graph
upkeep: forgets sessions in the graph
"""
