"""Memories in a Graphiti knowledge graph.

command: `session-memory graph`
graphs: the open graphs of a home's groups
settings: the section `memories.graphiti` of config.yaml
strategy: the strategy that fills the graph
tools: the tool `search_graph`
upkeep: forgets sessions in the graph
values: its facts
"""
